package fingerprint

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"nocturne/runners"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// machine is a Source of recorded text.
type machine struct {
	files fstest.MapFS
	// query is what nvidia-smi knows of each GPU: a heading of field names, then
	// rows. It answers a query for some of them, and refuses other fields.
	query string
	// answers are the other outputs of nvidia-smi, by arguments.
	answers map[string]Output
	// missing says that nvidia-smi is not installed.
	missing bool
}

func (m machine) Files() fs.FS { return m.files }

func (m machine) Size(path string) (int64, error) {
	if path != "/dev/shm" || m.files == nil {
		return 0, &fs.PathError{Op: "statfs", Path: path, Err: fs.ErrNotExist}
	}
	return 64 << 20, nil
}

func (m machine) Run(_ context.Context, name string, args ...string) (Output, error) {
	if m.missing || name != "nvidia-smi" {
		return Output{}, &exec.Error{Name: name, Err: exec.ErrNotFound}
	}
	key := strings.Join(args, " ")
	if answer, ok := m.answers[key]; ok {
		return answer, nil
	}
	if fields, ok := strings.CutPrefix(args0(args), "--query-gpu="); ok {
		return m.answerQuery(strings.Split(fields, ",")), nil
	}
	return Output{}, errors.New("nothing recorded for " + key)
}

func args0(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func (m machine) answerQuery(fields []string) Output {
	lines := strings.Split(strings.TrimSpace(m.query), "\n")
	names := strings.Split(lines[0], ",")
	var columns []int
	for _, field := range fields {
		column := slices.Index(names, field)
		if column < 0 {
			return Output{Text: fmt.Sprintf("Field %q is not a valid field to query.\n\n", field), Status: 2}
		}
		columns = append(columns, column)
	}
	var text strings.Builder
	for _, line := range lines[1:] {
		values := strings.Split(line, ",")
		if len(values) != len(names) {
			text.WriteString(line + "\n") // a message among the rows
			continue
		}
		for i, column := range columns {
			if i > 0 {
				text.WriteString(", ")
			}
			text.WriteString(values[column])
		}
		text.WriteString("\n")
	}
	return Output{Text: text.String()}
}

// with returns a changed copy.
func (m machine) with(change func(*machine)) machine {
	m.files, m.answers = maps.Clone(m.files), maps.Clone(m.answers)
	change(&m)
	return m
}

// file adds a file.
func (m *machine) file(name, text string) { m.files[name] = &fstest.MapFile{Data: []byte(text)} }

func recorded(t *testing.T, dir string) machine {
	t.Helper()
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join("testdata", dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	m := machine{
		files: hostFiles(),
		query: read("query.csv"),
		answers: map[string]Output{
			"topo -m":     {Text: read("topo-m.txt")},
			"topo -p2p r": {Text: read("topo-p2p.txt")},
			"topo -p2p w": {Text: read("topo-p2p.txt")},
			"--version":   {Text: read("version.txt")},
		},
	}
	m.file("proc/cpuinfo", read("cpuinfo.txt"))
	m.file("proc/driver/nvidia/version", read("module.txt"))
	m.file("proc/driver/nvidia/params", read("params.txt"))
	return m
}

// hostFiles are those of a plain host with two sockets.
func hostFiles() fstest.MapFS {
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"etc/machine-id":                     "0123456789abcdef0123456789abcdef\n",
		"proc/cpuinfo":                       "model name\t: AMD EPYC 9575F\nphysical id\t: 0\n\nmodel name\t: AMD EPYC 9575F\nphysical id\t: 1\n",
		"proc/meminfo":                       "MemTotal:       131960832 kB\nMemFree:        1 kB\n",
		"proc/cmdline":                       "root=/dev/sda1 quiet amd_iommu=on iommu=pt\n",
		"proc/sys/kernel/osrelease":          "6.8.0-85-generic\n",
		"proc/sys/kernel/hostname":           "gpu-1\n",
		"proc/sys/kernel/random/boot_id":     "11111111-2222-3333-4444-555555555555\n",
		"proc/self/cgroup":                   "0::/user.slice\n",
		"proc/self/mountinfo":                "25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n",
		"sys/devices/system/node/has_cpu":    "0-1\n",
		"sys/class/iommu/ivhd0/intel-iommu/": "",
	} {
		files[strings.TrimSuffix(name, "/")] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

// eightGPUs is a machine of two sockets with eight PCIe cards and a network card.
func eightGPUs() machine {
	var query strings.Builder
	query.WriteString("index,name,uuid,pci.bus_id,memory.total,compute_cap,driver_version,pcie.link.gen.max,pcie.link.width.max," +
		"pcie.link.width.current,addressing_mode,clocks.applications.graphics,clocks.max.memory,clocks.max.sm,compute_mode," +
		"ecc.mode.current,enforced.power.limit,mig.mode.current,pcie.link.gen.current,persistence_mode,power.default_limit," +
		"power.limit,vbios_version\n")
	for i := range 8 {
		fmt.Fprintf(&query, "%d,NVIDIA RTX PRO 6000 Blackwell Server Edition,GPU-0f0e0d0c-1111-2222-3333-44445555666%d,"+
			"00000000:%d1:00.0,97887,12.0,580.82.07,5,16,16,None,[N/A],14001,2430,Default,Enabled,600.00,[N/A],1,Disabled,"+
			"600.00,600.00,98.02.6a.00.03\n", i, i, i)
	}
	m := machine{
		files: hostFiles(),
		query: query.String(),
		answers: map[string]Output{
			"topo -m":     {Text: topologyPCIe},
			"topo -p2p r": {Text: p2pTable(8, "OK")},
			"topo -p2p w": {Text: p2pTable(8, "OK")},
			"--version":   {Text: "NVIDIA-SMI version  : 580.82.07\nNVML version        : 580.82\nDRIVER version      : 580.82.07\nCUDA Version        : 13.0\n"},
		},
	}
	m.file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build  (root@host)\n")
	return m
}

func p2pTable(n int, word string) string {
	var text strings.Builder
	text.WriteString(" \t\x1b[4m")
	for i := range n {
		fmt.Fprintf(&text, "GPU%d\t", i)
	}
	text.WriteString("\x1b[0m\n")
	for i := range n {
		fmt.Fprintf(&text, " GPU%d\t", i)
		for j := range n {
			text.WriteString(map[bool]string{true: "X", false: word}[i == j] + "\t")
		}
		text.WriteString("\n")
	}
	return text.String() + "\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n"
}

const topologyPCIe = "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tGPU5\tGPU6\tGPU7\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n" +
	"GPU0\t X \tPHB\tNODE\tNODE\tSYS\tSYS\tSYS\tSYS\tNODE\t0-31,64-95\t0\t\tN/A\n" +
	"GPU1\tPHB\t X \tNODE\tNODE\tSYS\tSYS\tSYS\tSYS\tNODE\t0-31,64-95\t0\t\tN/A\n" +
	"GPU2\tNODE\tNODE\t X \tPHB\tSYS\tSYS\tSYS\tSYS\tNODE\t0-31,64-95\t0\t\tN/A\n" +
	"GPU3\tNODE\tNODE\tPHB\t X \tSYS\tSYS\tSYS\tSYS\tNODE\t0-31,64-95\t0\t\tN/A\n" +
	"GPU4\tSYS\tSYS\tSYS\tSYS\t X \tPHB\tNODE\tNODE\tSYS\t32-63,96-127\t1\t\tN/A\n" +
	"GPU5\tSYS\tSYS\tSYS\tSYS\tPHB\t X \tNODE\tNODE\tSYS\t32-63,96-127\t1\t\tN/A\n" +
	"GPU6\tSYS\tSYS\tSYS\tSYS\tNODE\tNODE\t X \tPHB\tSYS\t32-63,96-127\t1\t\tN/A\n" +
	"GPU7\tSYS\tSYS\tSYS\tSYS\tNODE\tNODE\tPHB\t X \tSYS\t32-63,96-127\t1\t\tN/A\n" +
	"NIC0\tNODE\tNODE\tNODE\tNODE\tSYS\tSYS\tSYS\tSYS\t X \t\t\t\t\n" +
	"\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n" +
	"\nNIC Legend:\n\n  NIC0: mlx5_0\n\n"

func read(t *testing.T, source Source) runners.Fingerprint {
	t.Helper()
	f, err := Read(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// unreadable asserts that exactly what the texts tell could not be read.
func unreadable(t *testing.T, f runners.Fingerprint, texts ...string) {
	t.Helper()
	if len(f.Unreadable) != len(texts) {
		t.Errorf("unreadable %q, want %d entries %q", f.Unreadable, len(texts), texts)
		return
	}
	for i, text := range texts {
		if !strings.Contains(f.Unreadable[i], text) {
			t.Errorf("unreadable %q, want %q in it", f.Unreadable[i], text)
		}
	}
}
