package nccl_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nocturne/nccl"
)

func TestParseConf(t *testing.T) {
	text := strings.Join([]string{
		"# NCCL_PROTO=Simple",
		"NCCL_PROTO=LL",
		"no equals sign",
		"",
		"NCCL_ALGO=ring,tree;allreduce:tree",
		"NCCL_PROTO=Simple",
		"NCCL_SOCKET_IFNAME==eth0",
		"NCCL_NTHREADS = 512",
		"export NCCL_BUFFSIZE=1",
		`NCCL_NET="IB"`,
		"NCCL_DEBUG=INFO # loud",
		"NCCL_TOPO_FILE=",
		"NCCL_MAX_CTAS=8\r",
		"=nameless",
		"LAST=1",
	}, "\n")
	got, err := nccl.ParseConf(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []nccl.ConfSetting{
		{Name: "NCCL_PROTO", Value: "LL", Line: 2},
		{Name: "NCCL_ALGO", Value: "ring,tree;allreduce:tree", Line: 5},
		{Name: "NCCL_PROTO", Value: "Simple", Line: 6, Shadowed: true},
		{Name: "NCCL_SOCKET_IFNAME", Value: "=eth0", Line: 7},
		{Name: "NCCL_NTHREADS ", Value: " 512", Line: 8, Faults: []string{"blanks around the name belong to the name", "blanks around the value belong to the value"}},
		{Name: "export NCCL_BUFFSIZE", Value: "1", Line: 9, Faults: []string{"export belongs to the name"}},
		{Name: "NCCL_NET", Value: `"IB"`, Line: 10, Faults: []string{"quotes belong to the value"}},
		{Name: "NCCL_DEBUG", Value: "INFO # loud", Line: 11, Faults: []string{"a comment after the value belongs to the value"}},
		{Name: "NCCL_TOPO_FILE", Value: "", Line: 12, Faults: []string{"an empty value blocks later files, and counts as absent for integers"}},
		{Name: "NCCL_MAX_CTAS", Value: "8\r", Line: 13, Faults: []string{"a carriage return at the end belongs to the value before NCCL 2.30"}},
		{Name: "LAST", Value: "1", Line: 15},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings differ:\n%s", diff)
	}
}

func TestParseConfLongLines(t *testing.T) {
	got, err := nccl.ParseConf(strings.NewReader("NCCL_IB_HCA=" + strings.Repeat("x", 2000)))
	if err != nil || len(got) != 1 || len(got[0].Value) != 1023 || len(got[0].Faults) != 1 {
		t.Errorf("a long value: %d settings, %v", len(got), err)
	}
	if _, err := nccl.ParseConf(strings.NewReader("A=1\nB=" + strings.Repeat("x", 70000))); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a line without end: %v", err)
	}
}

func TestWriteConf(t *testing.T) {
	var b strings.Builder
	err := nccl.WriteConf(&b, []string{"from a campaign\nof last night"}, settings{"NCCL_PROTO": "LL", "NCCL_ALGO": "ring,tree;allreduce:tree"})
	want := "# from a campaign\n# of last night\nNCCL_ALGO=ring,tree;allreduce:tree\nNCCL_PROTO=LL\n"
	if err != nil || b.String() != want {
		t.Errorf("wrote %q, %v; want %q", b.String(), err, want)
	}
	for name, set := range map[string]settings{
		"line end":      {"NCCL_PROTO": "LL\nNCCL_ALGO=Ring"},
		"equals":        {"NCCL=PROTO": "LL"},
		"comment":       {"#NCCL_PROTO": "LL"},
		"blank":         {"NCCL_PROTO": " LL"},
		"no value":      {"NCCL_PROTO": ""},
		"no name":       {"": "LL"},
		"secret":        {"NCCL_PSK": "0123456789"},
		"long":          {"NCCL_IB_HCA": strings.Repeat("x", 1024)},
		"trailing note": {"NCCL_PROTO": "LL # fast"},
	} {
		if err := nccl.WriteConf(&b, nil, set); err == nil {
			t.Errorf("%s is written", name)
		} else if name == "secret" && strings.Contains(err.Error(), "0123456789") {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}

// What is written is read back, each value once.
func TestConfRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := settings{}
		for _, name := range rapid.SliceOfDistinct(rapid.StringMatching(`[A-Z_]{1,12}`), rapid.ID[string]).Draw(t, "names") {
			set[name] = rapid.StringMatching(`[a-zA-Z0-9=;:^,|./_-]{1,12}`).Draw(t, "value")
		}
		var b strings.Builder
		if err := nccl.WriteConf(&b, []string{"NCCL_PROTO=not this"}, set); err != nil {
			t.Fatal(err)
		}
		got := settings{}
		read, err := nccl.ParseConf(strings.NewReader(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range read {
			if line.Shadowed || len(line.Faults) > 0 {
				t.Fatalf("a written line has faults: %+v", line)
			}
			got[line.Name] = line.Value
		}
		if diff := cmp.Diff(set, got); diff != "" {
			t.Fatalf("round trip:\n%s", diff)
		}
	})
}

func TestConfFiles(t *testing.T) {
	for _, c := range []struct {
		name, version string
		environment   settings
		want          []string
	}{
		{"home of the account", "2.28.9", settings{"HOME": "/srv"}, []string{"/home/llm/.nccl.conf", "/etc/nccl.conf"}},
		{"HOME from 2.30", "2.30.4", settings{"HOME": "/srv"}, []string{"/srv/.nccl.conf", "/etc/nccl.conf"}},
		{"no HOME from 2.30", "2.30.4", settings{}, []string{"/etc/nccl.conf"}},
		{"named file", "2.28.9", settings{"NCCL_CONF_FILE": "/a.conf", "HOME": "/srv"}, []string{"/a.conf", "/etc/nccl.conf"}},
		{"named file too early", "2.22.3", settings{"NCCL_CONF_FILE": "/a.conf"}, []string{"/home/llm/.nccl.conf", "/etc/nccl.conf"}},
		{"version unknown", "", settings{"HOME": "/srv"}, []string{"/srv/.nccl.conf", "/home/llm/.nccl.conf", "/etc/nccl.conf"}},
		{"one home", "", settings{"HOME": "/home/llm"}, []string{"/home/llm/.nccl.conf", "/etc/nccl.conf"}},
	} {
		var v nccl.Version
		if c.version != "" {
			v = version(t, c.version)
		}
		if diff := cmp.Diff(c.want, nccl.ConfFiles(v, c.environment, "/home/llm")); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}
