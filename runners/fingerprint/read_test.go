package fingerprint

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"nocturne/runners"
)

// A recorded virtual machine with one H200.
func TestReadH200(t *testing.T) {
	t.Parallel()
	got, err := json.MarshalIndent(read(t, recorded(t, "h200")), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "h200", "fingerprint.json")
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestReadEightGPUs(t *testing.T) {
	t.Parallel()
	f := read(t, eightGPUs())
	unreadable(t, f)
	h := f.Hardware
	if h.Name != "8 x NVIDIA RTX PRO 6000 Blackwell Server Edition, PCIe" || h.CPU != "AMD EPYC 9575F" ||
		h.Sockets != 2 || h.NUMANodes != 2 || h.MemoryMiB != 128868 || len(h.GPUs) != 8 {
		t.Errorf("hardware %+v", h)
	}
	want := runners.GPU{Index: 7, Name: "NVIDIA RTX PRO 6000 Blackwell Server Edition", UUID: "GPU-0f0e0d0c-1111-2222-3333-444455556667",
		MemoryMiB: 97887, ComputeCapability: "12.0", PCIeGenMax: 5, PCIeWidthMax: 16}
	if diff := cmp.Diff(want, h.GPUs[7]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"SYS", "SYS", "SYS", "SYS", "NODE", "NODE", "PHB", "X"}, h.Links[7]); diff != "" {
		t.Error(diff)
	}
	if f.Stack.Driver != "580.82.07" || f.Stack.CUDA != "13.0" || f.Stack.Kernel != "6.8.0-85-generic" {
		t.Errorf("stack %+v", f.Stack)
	}
	for name, value := range map[string]string{
		"p2p.read": "OK", "p2p.write": "OK", "driver.module": "open", "gpu.pcie_gen_current": "1", "gpu.mig_mode": "[N/A]",
		"gpu.persistence_mode": "Disabled", "iommu": "active", "kernel.iommu_parameters": "amd_iommu=on iommu=pt",
		"container": "none", "shm_size_mib": "64", "boot_id": "11111111-2222-3333-4444-555555555555",
	} {
		if got, ok := f.Settings[name]; !ok || got != value {
			t.Errorf("setting %s is %q, want %q", name, got, value)
		}
	}
}

func TestSettingsThatDifferBetweenGPUs(t *testing.T) {
	t.Parallel()
	f := read(t, eightGPUs().with(func(m *machine) {
		m.query = strings.Replace(m.query, "600.00,600.00,98.02", "600.00,450.00,98.02", 1)
	}))
	const want = "0: 450.00, 1: 600.00, 2: 600.00, 3: 600.00, 4: 600.00, 5: 600.00, 6: 600.00, 7: 600.00"
	if got := f.Settings["gpu.power_limit_w"]; got != want {
		t.Errorf("power limits %q, want %q", got, want)
	}
	if got := f.Settings["gpu.power_default_limit_w"]; got != "600.00" {
		t.Errorf("default power limits %q", got)
	}
}

// Everything that nvidia-smi can refuse is told, and the rest still read.
func TestReadTroubledDrivers(t *testing.T) {
	t.Parallel()
	refuse := func(status int, text string) func(*machine) {
		return func(m *machine) {
			for _, question := range [][]string{hardwareFields} {
				m.answers["--query-gpu=index,"+strings.Join(question, ",")+" --format=csv,noheader,nounits"] = Output{Text: text, Status: status}
			}
		}
	}
	tests := map[string]struct {
		change     func(*machine)
		unreadable []string
		gpus       int
		driver     string
		cuda       string
	}{
		"no tool": {func(m *machine) { m.missing = true }, []string{"gpus: nvidia-smi is not installed"}, 0, "580.82.07", ""},
		"no driver": {refuse(9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n"),
			[]string{"status 9: NVIDIA-SMI has failed"}, 0, "580.82.07", ""},
		"upgraded, not rebooted": {refuse(18, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 590.48\n"),
			[]string{"reboot"}, 0, "580.82.07", ""},
		"no devices":      {refuse(6, "No devices were found\n"), []string{"No devices were found"}, 0, "580.82.07", ""},
		"devices without": {refuse(0, "No devices were found\n"), []string{"No devices were found"}, 0, "580.82.07", "13.0"},
		"no topology": {func(m *machine) {
			m.answers["topo -m"] = Output{Text: "Unable to query topology: Unknown Error\n", Status: 255}
		},
			[]string{"links between the GPUs: nvidia-smi ended with status 255"}, 8, "580.82.07", "13.0"},
		"topology of others": {func(m *machine) { m.answers["topo -p2p r"] = Output{Text: p2pTable(4, "OK")} },
			[]string{"p2p.read: it is about GPUs [0 1 2 3]"}, 8, "580.82.07", "13.0"},
		"old driver": {func(m *machine) {
			m.query = strings.ReplaceAll(strings.Replace(m.query, "addressing_mode", "x", 1), "compute_cap", "y")
			m.answers["--version"] = Output{Text: "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n", Status: 1}
			m.answers[""] = Output{Text: "| NVIDIA-SMI 470.82.01    Driver Version: 470.82.01    CUDA Version: 11.4     |\n"}
		}, []string{"addressing_mode: unknown", "compute_cap: unknown"}, 8, "580.82.07", "11.4"},
		"new driver": {func(m *machine) {
			m.query = strings.Replace(strings.ReplaceAll(m.query, "580.82.07", "[Requested functionality has been deprecated]"), "driver_version", "driver_version", 1)
			delete(m.files, "proc/driver/nvidia/version")
			m.answers["--version"] = Output{Text: versions610}
		}, nil, 8, "610.12", "13.4"},
		"CUDA nowhere": {func(m *machine) {
			m.answers["--version"] = Output{Text: "garbage"}
			m.answers[""] = Output{Text: "garbage"}
		}, []string{"CUDA version of the driver: nvidia-smi does not tell it"}, 8, "580.82.07", ""},
		"a GPU lost": {func(m *machine) {
			m.query = strings.Replace(m.query, "3,NVIDIA RTX", "Unable to determine the device handle for GPU0000:31:00.0: Unknown Error\n33,NVIDIA RTX", 1)
			m.query = dropLine(m.query, "33,")
		}, []string{"gpu settings: nvidia-smi says: Unable", "gpus: nvidia-smi says: Unable", "links between the GPUs: it is about", "p2p.read", "p2p.write"}, 7, "580.82.07", "13.0"},
		"a GPU at fault": {func(m *machine) {
			m.query = strings.Replace(m.query, "97887", "[GPU requires reset]", 1)
		}, []string{"gpu 0 memory.total: [GPU requires reset]"}, 8, "580.82.07", "13.0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := read(t, eightGPUs().with(test.change))
			unreadable(t, f, test.unreadable...)
			if len(f.Hardware.GPUs) != test.gpus || f.Stack.Driver != test.driver || f.Stack.CUDA != test.cuda {
				t.Errorf("%d GPUs, driver %q, CUDA %q; want %d, %q, %q", len(f.Hardware.GPUs), f.Stack.Driver, f.Stack.CUDA,
					test.gpus, test.driver, test.cuda)
			}
		})
	}
}

// dropLine removes the line that begins with prefix.
func dropLine(text, prefix string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, prefix) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func TestReadNothing(t *testing.T) {
	t.Parallel()
	f := read(t, machine{missing: true})
	unreadable(t, f, "CPU: ", "CPU: open proc/cpuinfo", "NUMA nodes", "gpus: nvidia-smi is not installed", "kernel: open",
		"machine id", "memory: open", "size of /dev/shm", "sockets")
	if f.Hardware.Key == "" || f.Stack.Key == "" || f.Hardware.Instance == "" || f.Hardware.Name != "no GPU" {
		t.Errorf("fingerprint %+v", f)
	}
}

func TestReadMIG(t *testing.T) {
	t.Parallel()
	f := read(t, recorded(t, "h200").with(func(m *machine) {
		m.query = strings.Replace(m.query, "Disabled", "Enabled", 1)
		m.answers["-L"] = Output{Text: "GPU 0: NVIDIA H200 (UUID: GPU-1)\n  MIG 3g.71gb     Device  0: (UUID: MIG-1)\n  MIG 1g.18gb     Device  1: (UUID: MIG-2)\n"}
	}))
	if got := f.Settings["gpu.0.mig"]; got != "3g.71gb 1g.18gb" {
		t.Errorf("MIG devices %q", got)
	}
	if plain := read(t, recorded(t, "h200")); plain.Hardware.Key != f.Hardware.Key {
		t.Errorf("MIG mode, a setting, changed the hardware key")
	}
}

func TestContainers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file, text, want string
	}{
		"docker":          {".dockerenv", "", "docker"},
		"podman":          {"run/.containerenv", "", "podman"},
		"nspawn":          {"run/systemd/container", "systemd-nspawn\n", "systemd-nspawn"},
		"kubernetes":      {"proc/self/cgroup", "0::/kubepods.slice/pod1/cri-containerd-2\n", "kubepods"},
		"own namespace":   {"proc/self/mountinfo", "580 1 0:40 / / rw - overlay overlay rw,lowerdir=/var/lib/containerd/x\n", "containerd"},
		"docker beside":   {"proc/self/mountinfo", "25 1 8:1 / / rw - ext4 /dev/sda rw\n99 25 0:40 / /var/lib/docker/x rw - overlay overlay rw\n", "none"},
		"an empty marker": {"run/systemd/container", "\n", "none"},
	}
	for name, test := range tests {
		f := read(t, eightGPUs().with(func(m *machine) { m.file(test.file, test.text) }))
		if got := f.Settings["container"]; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestInstance(t *testing.T) {
	t.Parallel()
	here := read(t, eightGPUs()).Hardware.Instance
	tests := map[string]struct {
		change func(*machine)
		same   bool
	}{
		"again":          {func(*machine) {}, true},
		"after a reboot": {func(m *machine) { m.file("proc/sys/kernel/random/boot_id", "other") }, true},
		"id of dbus": {func(m *machine) {
			m.files["var/lib/dbus/machine-id"] = m.files["etc/machine-id"]
			m.file("etc/machine-id", "")
		}, true},
		"a sibling":       {func(m *machine) { m.query = strings.ReplaceAll(m.query, "GPU-0f", "GPU-ff") }, false},
		"another machine": {func(m *machine) { m.file("etc/machine-id", "ffff") }, false},
	}
	for name, test := range tests {
		if got := read(t, eightGPUs().with(test.change)).Hardware.Instance; (got == here) != test.same {
			t.Errorf("%s: instance %s, here %s", name, got, here)
		}
	}
	unnamed := func(host string) runners.Fingerprint {
		return read(t, eightGPUs().with(func(m *machine) {
			m.file("etc/machine-id", "uninitialized\n")
			m.file("proc/sys/kernel/hostname", host)
		}))
	}
	unreadable(t, unnamed("a"), "machine id: there is none")
	if unnamed("a").Hardware.Instance == unnamed("b").Hardware.Instance {
		t.Error("without a machine id the host name does not tell two boxes apart")
	}
}

// A card in a slot of eight lanes is another hardware, however many the card has.
func TestSlotWidth(t *testing.T) {
	t.Parallel()
	const bridge = "sys/devices/pci0000:00/0000:00:01.1"
	tests := map[string]struct {
		slot    string
		current string
		want    int
	}{
		"full":            {"16\n", "16", 16},
		"half":            {"8\n", "8", 8},
		"idle":            {"16\n", "4", 16},
		"virtual bridge":  {"1\n", "16", 16},
		"unknown bridge":  {"", "16", 16},
		"larger slot":     {"32\n", "16", 16},
		"not a number":    {"Unknown\n", "16", 16},
		"current unknown": {"8\n", "[N/A]", 8},
	}
	for name, test := range tests {
		f := read(t, recorded(t, "h200").with(func(m *machine) {
			m.query = strings.Replace(m.query, "5,16,16", "5,16,"+test.current, 1)
			m.files["sys/bus/pci/devices/0000:00:06.0"] = &fstest.MapFile{
				Data: []byte("../../../devices/pci0000:00/0000:00:01.1/0000:00:06.0"), Mode: fs.ModeSymlink | 0o777}
			m.file("sys/devices/pci0000:00/0000:00:01.1/0000:00:06.0/max_link_width", "16\n")
			m.file("sys/devices/pci0000:00/0000:00:01.1/0000:00:06.0/iommu_group/type", "identity\n")
			m.file(bridge+"/max_link_width", test.slot)
		}))
		if got := f.Hardware.GPUs[0].PCIeWidthMax; got != test.want {
			t.Errorf("%s: %d lanes, want %d", name, got, test.want)
		}
		if got := f.Settings["gpu.0.iommu"]; got != "identity" {
			t.Errorf("%s: IOMMU group %q", name, got)
		}
	}
}
