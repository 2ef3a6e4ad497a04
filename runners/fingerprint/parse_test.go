package fingerprint

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const versions610 = "NVIDIA-SMI version  : 610.12\nNVML version        : 610.12\n" +
	"DRIVER version      : deprecated, see KMD version\nCUDA Version        : deprecated, see CUDA UMD version\n" +
	"KMD version         : 610.12\nCUDA UMD version    : 13.4\n"

func TestParseTopology(t *testing.T) {
	t.Parallel()
	const heading = "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
	two := func(link string) [][]string { return [][]string{{"X", link}, {link, "X"}} }
	tests := map[string]struct {
		text string
		want [][]string
		gpus []int
		err  string
	}{
		"one GPU": {"\t\x1b[4mGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\nGPU0\t X \t0-23\t0\t\tN/A\n",
			[][]string{{"X"}}, []int{0}, ""},
		"NVSwitch":             {heading + "GPU0\t X \tNV18\t0-55,112-167\t0\t\tN/A\nGPU1\tNV18\t X \t0-55\t0\t\tN/A\n", two("NV18"), []int{0, 1}, ""},
		"no escapes":           {"\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPIX\t0\nGPU1\tPIX\t X \t0\n", two("PIX"), []int{0, 1}, ""},
		"no NUMA column":       {"\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPXB\t0-23\tN/A\nGPU1\tPXB\t X \t0-23\tN/A\n", two("PXB"), []int{0, 1}, ""},
		"empty affinity":       {heading + "GPU0\t X \tSYS\t\t\t\tN/A\nGPU1\tSYS\t X \t\t\t\tN/A\n", two("SYS"), []int{0, 1}, ""},
		"devices by name":      {"\tGPU0\tGPU1\tmlx5_0\tmlx5_1\tCPU Affinity\nGPU0\t X \tPHB\tSYS\tSYS\t0\nGPU1\tPHB\t X \tSYS\tSYS\t0\nmlx5_0\tSYS\tSYS\t X \tPIX\t\nmlx5_1\tSYS\tSYS\tPIX\t X \t\n", two("PHB"), []int{0, 1}, ""},
		"network cards first":  {"\tNIC0\tGPU0\tGPU1\n NIC0\t X \tSYS\tSYS\nGPU0\tSYS\t X \tNV4\nGPU1\tSYS\tNV4\t X \n", two("NV4"), []int{0, 1}, ""},
		"cells N/A and blank":  {heading + "GPU0\t X \tN/A\t0\t0\t\tN/A\nGPU1\t\t X \t0\t0\t\tN/A\n", [][]string{{"X", "N/A"}, {"", "X"}}, []int{0, 1}, ""},
		"carriage returns":     {strings.ReplaceAll(heading+"GPU0\t X \tPHB\t0\t0\t\tN/A\nGPU1\tPHB\t X \t0\t0\t\tN/A\n", "\n", "\r\n"), two("PHB"), []int{0, 1}, ""},
		"words before":         {"Warning: infoROM is corrupted at gpu 0000:01:00.0\n" + heading + "GPU0\t X \tPHB\t0\nGPU1\tPHB\t X \t0\n", two("PHB"), []int{0, 1}, ""},
		"gap in the numbers":   {"\tGPU0\tGPU2\nGPU0\t X \tPHB\nGPU2\tPHB\t X \n", two("PHB"), []int{0, 2}, ""},
		"nothing":              {"", nil, nil, "no heading"},
		"only a message":       {"Failed to query topology\n", nil, nil, "no heading"},
		"row missing":          {heading + "GPU0\t X \tPHB\t0\n", nil, nil, "no row for GPU 1"},
		"row cut off":          {heading + "GPU0\t X \tPHB\t0\nGPU1\tPHB\n", nil, nil, "the row of GPU 1 ends before the column of GPU 1"},
		"row twice":            {heading + "GPU0\t X \tPHB\nGPU0\t X \tPHB\n", nil, nil, "two rows for GPU 0"},
		"a heading of legends": {"Legend:\n\n  X    = Self\n", nil, nil, "no heading"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseTopology(test.text)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.cells); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.gpus, got.gpus); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseP2P(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text, summary, err string
	}{
		"one GPU":         {" \t\x1b[4mGPU0\t\x1b[0m\n GPU0\tX\t\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n", "X", ""},
		"all of eight":    {p2pTable(8, "OK"), "OK", ""},
		"none":            {" \tGPU0\tGPU1\n GPU0\tX\tCNS\n GPU1\tCNS\tX\n", "CNS", ""},
		"by blanks":       {"      GPU0   GPU1\nGPU0   X     OK\nGPU1   OK    X\n", "OK", ""},
		"mixed":           {" \tGPU0\tGPU1\tGPU2\n GPU0\tX\tOK\tNS\n GPU1\tOK\tX\tNS\n GPU2\tNS\tNS\tX\n", "X OK NS | OK X NS | NS NS X", ""},
		"words to come":   {" \tGPU0\tGPU1\n GPU0\tX\tDR\n GPU1\tDR\tX\n", "DR", ""},
		"row cut off":     {" \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\n", "", "the row of GPU 1 ends"},
		"an empty answer": {"\n", "", "no heading"},
	}
	for name, test := range tests {
		got, err := parseP2P(test.text)
		switch {
		case test.err != "":
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: error %v, want %q", name, err, test.err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case len(got.gpus) == 1:
			if diff := cmp.Diff([][]string{{test.summary}}, got.cells); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		case got.summary() != test.summary:
			t.Errorf("%s: %q, want %q", name, got.summary(), test.summary)
		}
	}
}

// The odd values and lines of CSV answers.
func TestParseQuery(t *testing.T) {
	t.Parallel()
	fields := []string{"index", "name", "value"}
	tests := map[string]struct {
		text string
		rows map[int]string // name/value
		odd  []string
	}{
		"plain":              {"0, NVIDIA H100L-2-24C, 16\n1, NVIDIA GeForce RTX 5090, 8\n", map[int]string{0: "NVIDIA H100L-2-24C/16", 1: "NVIDIA GeForce RTX 5090/8"}, nil},
		"no blanks":          {"0,A,1\n", map[int]string{0: "A/1"}, nil},
		"absent":             {"0, A, [N/A]\n1, A, N/A\n", map[int]string{0: "A/[N/A]", 1: "A/N/A"}, nil},
		"empty value":        {"0, A, \n", map[int]string{0: "A/"}, nil},
		"quotes":             {"0, \"A, B\", 1\n1, A \"x\", 2\n", map[int]string{0: "A, B/1", 1: "A \"x\"/2"}, nil},
		"carriage returns":   {"0, A, 1\r\n1, A, 2\r\n", map[int]string{0: "A/1", 1: "A/2"}, nil},
		"blank lines":        {"\n0, A, 1\n\n", map[int]string{0: "A/1"}, nil},
		"a message":          {"Unable to determine the device handle for GPU0000:C1:00.0: Unknown Error\n0, A, 1\n", map[int]string{0: "A/1"}, []string{"Unable to determine the device handle for GPU0000:C1:00.0: Unknown Error"}},
		"too many fields":    {"0, A, 1, 2\n", map[int]string{}, []string{"0, A, 1, 2"}},
		"twice":              {"0, A, 1\n0, B, 2\n", map[int]string{0: "A/1"}, []string{"0, B, 2"}},
		"no number":          {"[N/A], A, 1\n-1, A, 1\n", map[int]string{}, []string{"[N/A], A, 1", "-1, A, 1"}},
		"no devices":         {"No devices were found\n", map[int]string{}, []string{"No devices were found"}},
		"an endless message": {strings.Repeat("x", 500) + "\n", map[int]string{}, []string{strings.Repeat("x", 120) + " ..."}},
	}
	for name, test := range tests {
		got := parseQuery(test.text, fields)
		rows := map[int]string{}
		for index, row := range got.rows {
			rows[index] = row["name"] + "/" + row["value"]
		}
		if diff := cmp.Diff(test.rows, rows); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(test.odd, got.odd); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAbsentAndFaultyValues(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ absent, faulty bool }{
		"16": {}, "Enabled": {}, "NVIDIA H100": {},
		"": {true, false}, "N/A": {true, false}, "[N/A]": {true, false}, "[Not Supported]": {true, false}, "[Not Found]": {true, false},
		"[Requested functionality has been deprecated]": {true, false},
		"[Unknown Error]":            {true, true},
		"[GPU requires reset]":       {true, true},
		"[Insufficient Permissions]": {true, true},
		"[A word to come]":           {true, true},
	}
	for value, want := range tests {
		if absent(value) != want.absent || faulty(value) != want.faulty {
			t.Errorf("%q: absent %v, faulty %v", value, absent(value), faulty(value))
		}
	}
}

func TestParseVersions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, driver, cuda string }{
		"580":     {"NVIDIA-SMI version  : 580.159.04\nNVML version        : 580.159\nDRIVER version      : 580.159.04\nCUDA Version        : 13.0\n", "580.159.04", "13.0"},
		"610":     {versions610, "610.12", "13.4"},
		"garbage": {"Invalid combination of input arguments.\n", "", ""},
		"no CUDA": {"DRIVER version : 580.82\nCUDA Version : N/A\n", "580.82", ""},
	}
	for name, test := range tests {
		if driver, cuda := parseVersions(test.text); driver != test.driver || cuda != test.cuda {
			t.Errorf("%s: %q, %q", name, driver, cuda)
		}
	}
	for text, want := range map[string]string{
		"| NVIDIA-SMI 580.159.04             Driver Version: 580.159.04     CUDA Version: 13.0     |": "13.0",
		"| NVIDIA-SMI 610.12      KMD Version: 610.12     CUDA UMD Version: 13.4     |":               "13.4",
		"| NVIDIA-SMI 470.82      Driver Version: 470.82     CUDA Version: N/A      |":                "",
	} {
		if got := parseBanner(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestParseModule(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (root@host)\nGCC version:  gcc version 15.3.0 (GCC)": {"580.159.04", "open"},
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024":                                                 {"550.54.14", "proprietary"},
		"GCC 15.3.0": {"15.3.0", "proprietary"},
		"":           {"", "proprietary"},
	} {
		if version, kind := parseModule(text); version != want[0] || kind != want[1] {
			t.Errorf("%q: %q, %q", text, version, kind)
		}
	}
}

func TestParseMIG(t *testing.T) {
	t.Parallel()
	const text = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n  MIG 3g.40gb     Device  0: (UUID: MIG-1)\n" +
		"  MIG 1g.10gb+me  Device  1: (UUID: MIG-2)\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-2)\n"
	if diff := cmp.Diff(map[int][]string{0: {"3g.40gb", "1g.10gb+me"}}, parseMIG(text)); diff != "" {
		t.Error(diff)
	}
}

func TestParseHostFiles(t *testing.T) {
	t.Parallel()
	cpus := map[string]struct {
		text, model string
		sockets     int
	}{
		"two sockets":   {"model name\t: Intel(R)  Xeon(R) 6980P\nphysical id\t: 0\n\nmodel name\t: x\nphysical id\t: 1\n", "x", 2},
		"no sockets":    {"model name : AMD EPYC\n", "AMD EPYC", 0},
		"Arm":           {"processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd4f\n", "Arm 0x41 part 0xd4f", 0},
		"nothing":       {"", "", 0},
		"several words": {"model name\t: Intel(R)  Xeon(R)   Platinum\n", "Intel(R) Xeon(R) Platinum", 0},
	}
	for name, test := range cpus {
		if model, sockets := parseCPU(test.text); model != test.model || sockets != test.sockets {
			t.Errorf("%s: %q, %d", name, model, sockets)
		}
	}
	for list, want := range map[string]int{"0": 1, "0-1": 2, "0-3,8": 5, "": 0, "x": 0, "3-1": 0, "0-x": 0, "0-1, 4-5": 4} {
		if got := countList(list); got != want {
			t.Errorf("list %q: %d, want %d", list, got, want)
		}
	}
	for text, want := range map[string]int64{"MemTotal:       131960832 kB\n": 128868, "": 0, "MemTotal: many kB\n": 0} {
		if got := parseMemory(text); got != want {
			t.Errorf("memory %q: %d, want %d", text, got, want)
		}
	}
	if got := parseParameters("RegistryDwords: \"ForceP2P=1\"\nEnableMSI: 1\nGrdmaPciTopoCheckOverride: 1\nRegistryDwordsPerDevice: \"\"\n"); got !=
		"GrdmaPciTopoCheckOverride=1 RegistryDwords=ForceP2P=1" {
		t.Errorf("parameters %q", got)
	}
}

// Sockets are counted by sysfs where /proc/cpuinfo does not tell them.
func TestSocketsOfSysfs(t *testing.T) {
	t.Parallel()
	f := read(t, eightGPUs().with(func(m *machine) {
		m.file("proc/cpuinfo", "CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n")
		for _, cpu := range []string{"0", "1", "72", "143"} {
			m.file("sys/devices/system/cpu/cpu"+cpu+"/topology/physical_package_id", map[bool]string{true: "1\n", false: "0\n"}[len(cpu) > 1])
		}
	}))
	if f.Hardware.Sockets != 2 || f.Hardware.CPU != "Arm 0x41 part 0xd4f" {
		t.Errorf("%d sockets of %q", f.Hardware.Sockets, f.Hardware.CPU)
	}
}

func FuzzParseTopology(f *testing.F) {
	f.Add(topologyPCIe)
	f.Add(p2pTable(4, "CNS"))
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (matrix, error){parseTopology, parseP2P} {
			m, err := parse(text)
			if err != nil {
				continue
			}
			if len(m.gpus) == 0 || len(m.cells) != len(m.gpus) {
				t.Fatalf("%d rows for %d GPUs", len(m.cells), len(m.gpus))
			}
			for _, row := range m.cells {
				if len(row) != len(m.gpus) {
					t.Fatalf("row %q for %d GPUs", row, len(m.gpus))
				}
			}
			_ = m.summary()
		}
	})
}

func FuzzParseQuery(f *testing.F) {
	f.Add("0, NVIDIA H100, 16\n1, \"A, B\", [N/A]\nNo devices were found\n")
	f.Fuzz(func(t *testing.T, text string) {
		fields := []string{"index", "name", "value"}
		got := parseQuery(text, fields)
		for _, index := range got.indices() {
			if index < 0 || len(got.rows[index]) != len(fields) {
				t.Fatalf("GPU %d: %q", index, got.rows[index])
			}
		}
		for _, line := range got.odd {
			if len(line) > 130 || strings.Contains(line, "\n") {
				t.Fatalf("message %q", line)
			}
		}
	})
}

func FuzzParseWords(f *testing.F) {
	f.Add(versions610)
	f.Add("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n  MIG 3g.40gb     Device  0: (UUID: MIG-1)\n")
	f.Add("model name\t: Intel(R) Xeon(R)\nphysical id\t: 0\n")
	f.Add("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n")
	f.Fuzz(func(t *testing.T, text string) {
		driver, cuda := parseVersions(text)
		model, _ := parseCPU(text)
		version, _ := parseModule(text)
		for _, word := range []string{driver, cuda, version, parseBanner(text)} {
			if !strings.Contains(text, word) {
				t.Errorf("version %q is not in the text", word)
			}
		}
		if strings.Contains(model, "\n") {
			t.Errorf("model %q", model)
		}
		for gpu, profiles := range parseMIG(text) {
			if gpu < 0 || len(profiles) == 0 {
				t.Errorf("MIG devices %q of GPU %d", profiles, gpu)
			}
		}
		if parseMemory(text) < 0 || countList(text) < 0 {
			t.Error("a negative count")
		}
		_, _, _ = parseParameters(text), iommuParameters(text), rootMount(text)
	})
}
