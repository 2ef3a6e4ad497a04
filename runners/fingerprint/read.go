package fingerprint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"nocturne/runners"
)

// Read takes the fingerprint of a machine. What cannot be read is named in
// Unreadable; the only error is that of an ended context. The stack lacks what
// only a running server can tell; complete it and call StackKey again.
func Read(ctx context.Context, source Source) (runners.Fingerprint, error) {
	r := &reader{source: source, files: source.Files(), settings: map[string]string{}, unreadable: []string{}}
	r.readHost()
	r.readDriver()
	r.readGPUs(ctx)
	if err := ctx.Err(); err != nil {
		return runners.Fingerprint{}, fmt.Errorf("read the fingerprint: %w", err)
	}
	r.hardware.Name = hardwareName(r.hardware)
	r.hardware.Key = HardwareKey(r.hardware)
	r.hardware.Instance = instance(r.hardware.GPUs, r.machineID())
	r.stack.Key = StackKey(r.stack)
	slices.Sort(r.unreadable)
	return runners.Fingerprint{
		Hardware: r.hardware, Stack: r.stack, Settings: r.settings, Unreadable: slices.Compact(r.unreadable),
	}, nil
}

// reader collects a fingerprint. Settings and unreadable may be added to from
// several goroutines.
type reader struct {
	source   Source
	files    fs.FS
	hardware runners.Hardware
	stack    runners.Stack

	mu         sync.Mutex
	settings   map[string]string
	unreadable []string
}

func (r *reader) set(name, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settings[name] = value
}

// cannot records that something could not be read, and why.
func (r *reader) cannot(what string, why any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unreadable = append(r.unreadable, fmt.Sprintf("%s: %v", what, why))
}

// text is the trimmed content of a file, false when it cannot be read.
func (r *reader) text(name string) (string, bool) {
	data, err := fs.ReadFile(r.files, strings.TrimPrefix(name, "/"))
	return strings.TrimSpace(string(data)), err == nil
}

// need is text of a file that every Linux machine has.
func (r *reader) need(what, name string) string {
	data, err := fs.ReadFile(r.files, strings.TrimPrefix(name, "/"))
	if err != nil {
		r.cannot(what, err)
	}
	return strings.TrimSpace(string(data))
}

// hardwareFields are part of the hardware, or tell the driver.
var hardwareFields = []string{
	"name", "uuid", "pci.bus_id", "memory.total", "compute_cap", "driver_version",
	"pcie.link.gen.max", "pcie.link.width.max", "pcie.link.width.current",
}

// settingFields are stored under the names beside them.
var settingFields = map[string]string{
	"persistence_mode":             "gpu.persistence_mode",
	"ecc.mode.current":             "gpu.ecc",
	"mig.mode.current":             "gpu.mig_mode",
	"compute_mode":                 "gpu.compute_mode",
	"power.limit":                  "gpu.power_limit_w",
	"power.default_limit":          "gpu.power_default_limit_w",
	"enforced.power.limit":         "gpu.power_enforced_limit_w",
	"clocks.max.sm":                "gpu.clock_max_sm_mhz",
	"clocks.max.memory":            "gpu.clock_max_memory_mhz",
	"clocks.applications.graphics": "gpu.clock_application_mhz",
	"pcie.link.gen.current":        "gpu.pcie_gen_current",
	"pcie.link.width.current":      "gpu.pcie_width_current",
	"vbios_version":                "gpu.vbios",
	"addressing_mode":              "gpu.addressing_mode",
}

// readGPUs asks nvidia-smi. When the first question fails, so would the others.
func (r *reader) readGPUs(ctx context.Context) {
	r.hardware.GPUs = []runners.GPU{}
	hardware, err := query(ctx, r.source, hardwareFields...)
	if err != nil {
		r.cannot("gpus", err)
		return
	}
	r.note("gpus", hardware)
	for _, index := range hardware.indices() {
		r.addGPU(index, hardware.rows[index])
	}
	var questions sync.WaitGroup
	questions.Go(func() { r.readSettings(ctx) })
	questions.Go(func() { r.readVersions(ctx) })
	if len(r.hardware.GPUs) > 1 {
		questions.Go(func() { r.readLinks(ctx) })
		questions.Go(func() { r.readP2P(ctx, "p2p.read", "r") })
		questions.Go(func() { r.readP2P(ctx, "p2p.write", "w") })
	}
	questions.Wait()
}

// note records what a query left open.
func (r *reader) note(what string, t table) {
	for _, line := range t.odd {
		r.cannot(what, "nvidia-smi says: "+line)
	}
	for _, field := range t.unknown {
		r.cannot("gpu "+field, "unknown to this driver's nvidia-smi")
	}
	for _, index := range t.indices() {
		for field, value := range t.rows[index] {
			if faulty(value) {
				r.cannot(fmt.Sprintf("gpu %d %s", index, field), value)
			}
		}
	}
}

func (r *reader) addGPU(index int, row map[string]string) {
	value := func(field string) string {
		if absent(row[field]) {
			return ""
		}
		return row[field]
	}
	r.hardware.GPUs = append(r.hardware.GPUs, runners.GPU{
		Index: index, Name: value("name"), UUID: value("uuid"),
		MemoryMiB: number(row["memory.total"]), ComputeCapability: value("compute_cap"),
		PCIeGenMax:   int(number(row["pcie.link.gen.max"])),
		PCIeWidthMax: r.slotWidth(row),
	})
	if driver := value("driver_version"); driver != "" {
		r.stack.Driver = driver
	}
	if group, ok := r.text(path.Join(pciDevice(row["pci.bus_id"]), "iommu_group/type")); ok {
		// identity is passthrough; DMA and DMA-FQ are translated, which P2P suffers from.
		r.set(fmt.Sprintf("gpu.%d.iommu", index), group)
	}
}

// slotWidth is the number of PCIe lanes that a GPU can use. The driver reports
// those of the card, even in a slot that has fewer; the bridge above it knows. A
// virtual machine's bridge may claim fewer than the link has now: then it is not
// believed.
func (r *reader) slotWidth(row map[string]string) int {
	card, now := number(row["pcie.link.width.max"]), number(row["pcie.link.width.current"])
	device := pciDevice(row["pci.bus_id"])
	target, err := fs.ReadLink(r.files, device)
	if err != nil {
		return int(card)
	}
	bridge := path.Join(path.Dir(device), target, "..")
	text, _ := r.text(path.Join(bridge, "max_link_width"))
	if slot := number(text); slot > 0 && slot < card && slot >= now {
		return int(slot)
	}
	return int(card)
}

// pciDevice is the sysfs path of a bus id as nvidia-smi writes it: its domain has
// eight digits there and four in sysfs.
func pciDevice(busID string) string {
	domain, rest, _ := strings.Cut(strings.ToLower(busID), ":")
	for len(domain) > 4 && domain[0] == '0' {
		domain = domain[1:]
	}
	return "sys/bus/pci/devices/" + domain + ":" + rest
}

func (r *reader) readSettings(ctx context.Context) {
	fields := make([]string, 0, len(settingFields))
	for field := range settingFields {
		fields = append(fields, field)
	}
	slices.Sort(fields)
	t, err := query(ctx, r.source, fields...)
	if err != nil {
		r.cannot("gpu settings", err)
		return
	}
	r.note("gpu settings", t)
	for _, field := range fields {
		if !slices.Contains(t.unknown, field) {
			r.set(settingFields[field], perGPU(t, field))
		}
	}
	for _, row := range t.rows {
		if row["mig.mode.current"] == "Enabled" {
			r.readMIG(ctx)
			return
		}
	}
}

// perGPU is the value that all GPUs agree on, or that of each.
func perGPU(t table, field string) string {
	var parts []string
	values := map[string]bool{}
	for _, index := range t.indices() {
		value := t.rows[index][field]
		values[value] = true
		parts = append(parts, fmt.Sprintf("%d: %s", index, value))
		if len(values) == 1 && len(parts) == len(t.rows) {
			return value
		}
	}
	return strings.Join(parts, ", ")
}

func (r *reader) readMIG(ctx context.Context) {
	text, err := runSMI(ctx, r.source, "-L")
	if err != nil {
		r.cannot("MIG devices", err)
		return
	}
	for gpu, profiles := range parseMIG(text) {
		r.set(fmt.Sprintf("gpu.%d.mig", gpu), strings.Join(profiles, " "))
	}
}

func (r *reader) readVersions(ctx context.Context) {
	text, err := runSMI(ctx, r.source, "--version")
	driver, cuda := parseVersions(text)
	if err != nil || cuda == "" {
		var banner string
		if banner, err = runSMI(ctx, r.source); err == nil {
			cuda = parseBanner(banner)
		}
	}
	if r.stack.Driver == "" {
		r.stack.Driver = driver
	}
	r.stack.CUDA = cuda
	if cuda == "" {
		r.cannot("CUDA version of the driver", errors.Join(err, errors.New("nvidia-smi does not tell it")))
	}
}

func (r *reader) readLinks(ctx context.Context) {
	links, err := r.readMatrix(ctx, parseTopology, "topo", "-m")
	if err != nil {
		r.cannot("links between the GPUs", err)
		return
	}
	r.hardware.Links = links.cells
}

func (r *reader) readP2P(ctx context.Context, setting, kind string) {
	status, err := r.readMatrix(ctx, parseP2P, "topo", "-p2p", kind)
	if err != nil {
		r.cannot(setting, err)
		return
	}
	r.set(setting, status.summary())
}

// readMatrix reads a table that must be about exactly the GPUs that were found.
func (r *reader) readMatrix(ctx context.Context, parse func(string) (matrix, error), args ...string) (matrix, error) {
	text, err := runSMI(ctx, r.source, args...)
	if err != nil {
		return matrix{}, err
	}
	m, err := parse(text)
	if err != nil {
		return matrix{}, err
	}
	var gpus []int
	for _, gpu := range r.hardware.GPUs {
		gpus = append(gpus, gpu.Index)
	}
	if !slices.Equal(m.gpus, gpus) {
		return matrix{}, fmt.Errorf("it is about GPUs %v, the machine has %v", m.gpus, gpus)
	}
	return m, nil
}
