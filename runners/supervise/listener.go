package supervise

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// listenInterval is how often WaitListening looks.
const listenInterval = 10 * time.Millisecond

// ForeignListenerError says that someone else listens on the server's address.
type ForeignListenerError struct {
	Address string
}

func (e *ForeignListenerError) Error() string {
	return fmt.Sprintf("%s is in use by a process that is not part of this launch: another server took the port", e.Address)
}

// ErrEnded is returned by waits for a server that has ended meanwhile.
var ErrEnded = errors.New("the server ended")

// WaitListening waits until a process of the launch listens on an address
// ("127.0.0.1:8000"), itself or by a wildcard, and returns that process. It
// returns ErrEnded when the server ends before, and a *ForeignListenerError when
// the address is taken by others.
func (p *Process) WaitListening(ctx context.Context, address string) (Member, error) {
	ticker := time.NewTicker(listenInterval)
	defer ticker.Stop()
	for strikes := 0; ; {
		member, listening, err := p.Listening(address)
		var foreign *ForeignListenerError
		switch {
		case errors.As(err, &foreign) && strikes < 2:
			strikes++ // a socket in the middle of being handed over looks foreign
		case err != nil:
			return Member{}, err
		case listening:
			return member, nil
		}
		select {
		case <-p.done:
			exit, _ := p.Exit()
			return Member{}, fmt.Errorf("wait for a listener on %s: %w: %s", address, ErrEnded, exit)
		case <-ctx.Done():
			return Member{}, fmt.Errorf("wait for a listener on %s: %w", address, ctx.Err())
		case <-ticker.C:
		}
	}
}

// Listening looks once who listens on an address: a process of the launch,
// nobody (false), or others, which is a *ForeignListenerError.
func (p *Process) Listening(address string) (Member, bool, error) {
	want, err := netip.ParseAddrPort(address)
	if err != nil {
		return Member{}, false, fmt.Errorf("look for a listener: a literal address and port are needed: %w", err)
	}
	sockets, err := listeningSockets(want)
	if err != nil || len(sockets) == 0 {
		return Member{}, false, err
	}
	members, err := p.Processes()
	if err != nil {
		return Member{}, false, err
	}
	for _, m := range members {
		if slices.ContainsFunc(openSockets(m.PID), func(inode string) bool { return slices.Contains(sockets, inode) }) {
			return m, true, nil
		}
	}
	return Member{}, false, &ForeignListenerError{Address: address}
}

// listeningSockets returns the inodes of the sockets that would accept a
// connection to address.
func listeningSockets(address netip.AddrPort) ([]string, error) {
	var inodes []string
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // no IPv6 in this kernel
		}
		if err != nil {
			return nil, fmt.Errorf("look for a listener: %w", err)
		}
		found, err := parseListeners(f, address)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("look for a listener in %s: %w", name, err)
		}
		inodes = append(inodes, found...)
	}
	return inodes, nil
}

// parseListeners reads the format of /proc/net/tcp (proc_net_tcp in the kernel's
// documentation). Lines that it does not understand are passed over.
func parseListeners(r io.Reader, address netip.AddrPort) ([]string, error) {
	const localColumn, stateColumn, inodeColumn, listen = 1, 3, 9, "0A"
	var inodes []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) <= inodeColumn || fields[stateColumn] != listen {
			continue
		}
		local, ok := parseSocketAddress(fields[localColumn])
		if ok && local.Port() == address.Port() && accepts(local.Addr(), address.Addr()) {
			inodes = append(inodes, fields[inodeColumn])
		}
	}
	return inodes, lines.Err()
}

// accepts says whether a socket bound to local gets connections to address. A
// socket on [::] usually takes IPv4 as well.
func accepts(local, address netip.Addr) bool {
	return local == address || local.IsUnspecified() && (local.Is6() || address.Is4())
}

// parseSocketAddress reads "0100007F:1F90": the address in 32-bit words of the
// host's byte order (little-endian on every platform of these servers), the port
// in plain hexadecimal.
func parseSocketAddress(text string) (netip.AddrPort, bool) {
	host, port, ok := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	number, err2 := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || err2 != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	ip, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip.Unmap(), uint16(number)), ok
}

// openSockets returns the inodes of the sockets that a process has open, none
// when it may not be looked at.
func openSockets(pid int) []string {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var inodes []string
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join(dir, entry.Name()))
		if err != nil {
			continue
		}
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			inodes = append(inodes, strings.TrimSuffix(inode, "]"))
		}
	}
	return inodes
}
