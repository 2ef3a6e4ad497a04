package fingerprint

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nocturne/runners"
)

// What does and does not make another hardware.
func TestHardwareKey(t *testing.T) {
	t.Parallel()
	here := read(t, eightGPUs()).Hardware.Key
	replace := func(old, with string) func(*machine) {
		return func(m *machine) {
			m.query = strings.ReplaceAll(m.query, old, with)
			m.answers["topo -m"] = Output{Text: strings.ReplaceAll(m.answers["topo -m"].Text, old, with)}
		}
	}
	file := func(name, text string) func(*machine) { return func(m *machine) { m.file(name, text) } }
	tests := map[string]struct {
		change func(*machine)
		same   bool
	}{
		"again":                   {func(*machine) {}, true},
		"a sibling box":           {replace("GPU-0f0e0d0c", "GPU-ffffffff"), true},
		"reboot":                  {file("proc/sys/kernel/random/boot_id", "other"), true},
		"links under load":        {replace("[N/A],1,Disabled", "[N/A],5,Disabled"), true},
		"ECC off":                 {replace("97887,12.0", "98000,12.0"), true},
		"another driver":          {replace("580.82.07", "590.48.01"), true},
		"another kernel":          {file("proc/sys/kernel/osrelease", "6.17"), true},
		"power cap":               {replace("600.00,600.00", "600.00,450.00"), true},
		"P2P refused":             {func(m *machine) { m.answers["topo -p2p r"] = Output{Text: p2pTable(8, "CNS")} }, true},
		"more memory in the host": {file("proc/meminfo", "MemTotal: 1 kB\n"), true},
		"no escapes":              {replace("\x1b[4m", ""), true},
		"other cards":             {replace("RTX PRO 6000", "RTX PRO 5000"), false},
		"more memory on a card":   {replace("97887,12.0", "49140,12.0"), false},
		"older PCIe":              {replace("580.82.07,5,16,16", "580.82.07,4,16,16"), false},
		"half the lanes":          {replace("580.82.07,5,16,16", "580.82.07,5,8,8"), false},
		"other links":             {replace("PHB", "PIX"), false},
		"one link":                {func(m *machine) { m.answers["topo -m"] = Output{Text: strings.Replace(topologyPCIe, "PHB", "PIX", 1)} }, false},
		"another CPU":             {file("proc/cpuinfo", "model name: Intel\nphysical id: 0\n\nphysical id: 1\n"), false},
		"one socket":              {file("proc/cpuinfo", "model name: AMD EPYC 9575F\nphysical id: 0\n"), false},
		"more NUMA nodes":         {file("sys/devices/system/node/has_cpu", "0-7"), false},
	}
	for name, test := range tests {
		got := read(t, eightGPUs().with(test.change)).Hardware.Key
		if (got == here) != test.same || !strings.HasPrefix(got, "hw1:") {
			t.Errorf("%s: key %s, here %s", name, got, here)
		}
	}
}

// permuted is the same hardware with its GPUs in another order.
func permuted(h runners.Hardware, order []int) runners.Hardware {
	p := h
	p.GPUs, p.Links = nil, nil
	for i, from := range order {
		gpu := h.GPUs[from]
		gpu.Index = i
		p.GPUs = append(p.GPUs, gpu)
		row := make([]string, 0, len(order))
		for _, column := range order {
			row = append(row, h.Links[from][column])
		}
		p.Links = append(p.Links, row)
	}
	return p
}

func TestHardwareKeyIgnoresTheOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "gpus")
		h := runners.Hardware{CPU: "x"}
		for range n {
			h.GPUs = append(h.GPUs, runners.GPU{Name: rapid.SampledFrom([]string{"A", "B"}).Draw(t, "name")})
		}
		for i := range n {
			h.Links = append(h.Links, make([]string, n))
			for j := range i {
				h.Links[i][j] = rapid.SampledFrom([]string{"PHB", "NODE", "SYS"}).Draw(t, "link")
				h.Links[j][i] = h.Links[i][j]
			}
		}
		order := rapid.Permutation(seq(n)).Draw(t, "order")
		if got, want := HardwareKey(permuted(h, order)), HardwareKey(h); got != want {
			t.Fatalf("order %v: key %s, want %s", order, got, want)
		}
		if n < 3 {
			return
		}
		changed := permuted(h, seq(n))
		changed.Links[1] = slices.Clone(changed.Links[1])
		changed.Links[1][0] = "NV4"
		if HardwareKey(changed) == HardwareKey(h) {
			t.Fatal("a changed link has the same key")
		}
	})
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// Two topologies of real machines with the same count of each kind of link at
// every GPU are told apart.
func TestHardwareKeySeesTheShape(t *testing.T) {
	t.Parallel()
	machine := func(linked func(i, j int) bool) runners.Hardware {
		h := runners.Hardware{}
		for i := range 8 {
			h.GPUs = append(h.GPUs, runners.GPU{Name: "A", PCIeWidthMax: map[bool]int{true: 16, false: 8}[i < 4]})
			row := make([]string, 8)
			for j := range 8 {
				row[j] = map[bool]string{true: "NV2", false: "SYS"}[linked(i, j)]
			}
			h.Links = append(h.Links, row)
		}
		return h
	}
	within := machine(func(i, j int) bool { return i/4 == j/4 && i/2 == j/2 })
	across := machine(func(i, j int) bool { return i%4 == j%4 })
	if HardwareKey(within) == HardwareKey(across) {
		t.Error("pairs within a group and pairs across groups have one key")
	}
}

func TestMemoryClass(t *testing.T) {
	t.Parallel()
	for reported, want := range map[int64]int64{
		0: 1, 11264: 11, 12282: 12, 15360: 16, 16376: 16, 23028: 24, 24564: 24, 32607: 32, 40960: 40, 46068: 48, 49140: 48,
		81559: 80, 81920: 80, 95830: 94, 97887: 96, 143771: 141, 183359: 180, 275040: 288, 500_000: 512,
	} {
		if got := memoryClass(reported); got != want {
			t.Errorf("%d MiB: %d GiB, want %d", reported, got, want)
		}
	}
}

func TestStackKey(t *testing.T) {
	t.Parallel()
	stack := runners.Stack{Driver: "580.82", CUDA: "13.0", NCCL: "2.28.9", Server: "sglang", ServerVersion: "0.5.9", Model: "m", Kernel: "6.8"}
	key := StackKey(stack)
	stack.Key = key
	if StackKey(stack) != key || !strings.HasPrefix(key, "st1:") {
		t.Errorf("key %s, then %s", key, StackKey(stack))
	}
	for name, change := range map[string]func(*runners.Stack){
		"driver": func(s *runners.Stack) { s.Driver += "1" }, "CUDA": func(s *runners.Stack) { s.CUDA += "1" },
		"NCCL": func(s *runners.Stack) { s.NCCL += "1" }, "server": func(s *runners.Stack) { s.Server += "1" },
		"version": func(s *runners.Stack) { s.ServerVersion += "1" }, "model": func(s *runners.Stack) { s.Model += "1" },
		"kernel": func(s *runners.Stack) { s.Kernel += "1" },
	} {
		changed := stack
		change(&changed)
		if StackKey(changed) == key {
			t.Errorf("another %s has the same key", name)
		}
	}
}

func TestHardwareName(t *testing.T) {
	t.Parallel()
	gpus := func(names ...string) []runners.GPU {
		var list []runners.GPU
		for _, name := range names {
			list = append(list, runners.GPU{Name: name})
		}
		return list
	}
	two := func(link string) [][]string { return [][]string{{"X", link}, {link, "X"}} }
	tests := map[string]runners.Hardware{
		"no GPU":                         {},
		"no GPU, AMD EPYC":               {CPU: "AMD EPYC"},
		"1 x A":                          {GPUs: gpus("A"), Links: [][]string{{"X"}}},
		"2 x A, NVLink":                  {GPUs: gpus("A", "A"), Links: two("NV18")},
		"2 x A, PCIe":                    {GPUs: gpus("A", "A"), Links: two("SYS")},
		"2 x A":                          {GPUs: gpus("A", "A")},
		"1 x A + 2 x B, NVLink and PCIe": {GPUs: gpus("B", "A", "B"), Links: [][]string{{"X", "NV4", "SYS"}, {"NV4", "X", "SYS"}, {"SYS", "SYS", "X"}}},
		"2 x A, simulated":               {GPUs: gpus("A", "A"), Simulated: true},
	}
	for want, h := range tests {
		if got := hardwareName(h); got != want {
			t.Errorf("name %q, want %q", got, want)
		}
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	all := read(t, eightGPUs()).Hardware
	for _, selection := range []runners.GPUSelection{{All: true}, {}} {
		if got, err := Select(all, selection); err != nil || got.Key != all.Key {
			t.Errorf("%+v: %s, %v", selection, got.Key, err)
		}
	}
	pick := func(indices ...int) runners.Hardware {
		h, err := Select(all, runners.GPUSelection{Indices: indices})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	four := pick(2, 0, 1, 3, 3)
	if four.Name != "4 x NVIDIA RTX PRO 6000 Blackwell Server Edition, PCIe" || four.Instance != all.Instance {
		t.Errorf("selected %+v", four)
	}
	if diff := cmp.Diff([]string{"NODE", "NODE", "X", "PHB"}, four.Links[2]); diff != "" {
		t.Error(diff)
	}
	if four.Key == all.Key || four.Key != pick(4, 5, 6, 7).Key || four.Key == pick(0, 1, 4, 5).Key {
		t.Error("keys of selections do not tell equal from unequal halves")
	}
	if _, err := Select(all, runners.GPUSelection{Indices: []int{8}}); err == nil {
		t.Error("GPU 8 of 8 was selected")
	}
}

func TestSimulate(t *testing.T) {
	t.Parallel()
	here, there := read(t, eightGPUs()), read(t, recorded(t, "h200"))
	declared := runners.Simulated{GPU: "NVIDIA RTX PRO 6000", Count: 8, Driver: "580.82", CUDA: "13.0", NCCL: "2.28.9"}
	a, b := Simulate(here, declared), Simulate(there, declared)
	if a.Hardware.Key != b.Hardware.Key || a.Stack.Key != b.Stack.Key {
		t.Error("the same simulation has other keys on another host")
	}
	if a.Hardware.Instance != here.Hardware.Instance || a.Hardware.Key == here.Hardware.Key || !a.Hardware.Simulated ||
		a.Hardware.Name != "8 x NVIDIA RTX PRO 6000, simulated" || a.Stack.Driver != "580.82" || a.Stack.NCCL != "2.28.9" {
		t.Errorf("simulated %+v", a)
	}
	declared.Count = 4
	if Simulate(here, declared).Hardware.Key == a.Hardware.Key {
		t.Error("half the simulated GPUs have the same key")
	}
	real := a.Hardware
	real.Simulated = false
	if HardwareKey(real) == a.Hardware.Key {
		t.Error("a simulated machine has the key of a real one")
	}
}

// Sixteen GPUs are fingerprinted in no time.
func BenchmarkHardwareKey(b *testing.B) {
	h := runners.Hardware{}
	for i := range 16 {
		h.GPUs = append(h.GPUs, runners.GPU{Name: "A"})
		row := make([]string, 16)
		for j := range row {
			row[j] = fmt.Sprintf("NV%d", min(i, j)%3)
		}
		h.Links = append(h.Links, row)
	}
	order := rand.New(rand.NewPCG(1, 2)).Perm(16)
	h = permuted(h, order)
	for b.Loop() {
		HardwareKey(h)
	}
}
