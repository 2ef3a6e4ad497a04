package supervise

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestReservePort(t *testing.T) {
	t.Parallel()
	port, err := ReservePort("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if port.Number() < firstPort || port.Number() >= ephemeralStart() {
		t.Errorf("port %d is outside of %d to %d", port.Number(), firstPort, ephemeralStart())
	}
	if listener, err := net.Listen("tcp", port.Address()); err == nil {
		listener.Close()
		t.Error("somebody else could take a reserved port")
	}
	if conn, err := net.Dial("tcp", port.Address()); err == nil {
		conn.Close()
		t.Error("a reserved port accepts connections")
	}
	for range 2 {
		if err := port.Release(); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", port.Address())
	if err != nil {
		t.Fatal("a released port is not free: ", err)
	}
	listener.Close()
}

func TestReservePortRefuses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "localhost", "0.0.0.0", "::", "10.0.0.1", "127.0.0.1:80"} {
		if port, err := ReservePort(address); err == nil {
			t.Errorf("%q: reserved %s", address, port.Address())
			_ = port.Release()
		}
	}
}

func TestWaitListening(t *testing.T) {
	t.Parallel()
	port, err := ReservePort("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	p := prepare(t, helperSpec(t, "listen", port.Address()))
	if err := port.Release(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(testContext(t)); err != nil {
		t.Fatal(err)
	}
	member, err := p.WaitListening(testContext(t), port.Address())
	if err != nil {
		t.Fatal(err)
	}
	if member.PID == p.PID() || member.Parent != p.PID() {
		t.Errorf("%s listens, want the child of %d", member, p.PID())
	}
}

func TestWaitListeningToOthers(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p := start(t, helperSpec(t, "block"))
	_, err = p.WaitListening(testContext(t), listener.Addr().String())
	var foreign *ForeignListenerError
	if !errors.As(err, &foreign) || foreign.Address != listener.Addr().String() {
		t.Errorf("error %v, want a ForeignListenerError", err)
	}
}

func TestWaitListeningEnds(t *testing.T) {
	t.Parallel()
	port, err := ReservePort("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer port.Release()
	p := start(t, helperSpec(t, "exit", "3"))
	if _, err := p.WaitListening(testContext(t), port.Address()); !errors.Is(err, ErrEnded) ||
		!strings.Contains(err.Error(), "status 3") {
		t.Errorf("error %v, want ErrEnded with the status", err)
	}
	blocked := start(t, helperSpec(t, "block"))
	if _, err := blocked.WaitListening(shortContext(t), port.Address()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the context's", err)
	}
	if _, err := blocked.WaitListening(testContext(t), "localhost:80"); err == nil {
		t.Error("a name is no literal address")
	}
}

const tcpTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1 0000000000000000 100 0 0 10 0
   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 102 1 0000000000000000 100 0 0 10 0
   2: 0200007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 103 1 0000000000000000 100 0 0 10 0
   3: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 104 1 0000000000000000 20 4 30 10 -1
   4: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 105 1 0000000000000000 100 0 0 10 0
`

const tcp6Table = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 201 1 0000000000000000 100 0 0 10 0
   1: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 202 1 0000000000000000 100 0 0 10 0
   2: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 203 1 0000000000000000 100 0 0 10 0
`

func TestParseListeners(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		table, address string
		want           []string
	}{
		"address and wildcard":  {tcpTable, "127.0.0.1:8080", []string{"101", "102"}},
		"other port":            {tcpTable, "127.0.0.1:8081", []string{"105"}},
		"nobody":                {tcpTable, "127.0.0.1:8082", nil},
		"IPv4 on IPv6 sockets":  {tcp6Table, "127.0.0.1:8080", []string{"201", "203"}},
		"IPv6":                  {tcp6Table, "[::1]:8080", []string{"201", "202"}},
		"IPv6 on IPv4 sockets":  {tcpTable, "[::1]:8080", nil},
		"garbage":               {"x\n   0: zz:1F90 00 0A 0 0 0 0 0 0 1\n 0: 01:1F90 00 0A 0 0 0 0 0 0 1", "127.0.0.1:8080", nil},
		"nothing but a heading": {"  sl  local_address\n", "127.0.0.1:8080", nil},
	}
	for name, test := range tests {
		got, err := parseListeners(strings.NewReader(test.table), netip.MustParseAddrPort(test.address))
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, test.want)
		}
	}
}

func FuzzParseListeners(f *testing.F) {
	f.Add(tcpTable)
	f.Add(tcp6Table)
	f.Fuzz(func(t *testing.T, table string) {
		address := netip.MustParseAddrPort("127.0.0.1:8080")
		found, _ := parseListeners(strings.NewReader(table), address)
		for _, inode := range found {
			if !strings.Contains(table, inode) {
				t.Errorf("inode %q is not in the table", inode)
			}
		}
	})
}

// procFixture writes files below a folder that stands for /proc.
func procFixture(t *testing.T, files fstest.MapFS) string {
	t.Helper()
	root := t.TempDir()
	for name, file := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, file.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
