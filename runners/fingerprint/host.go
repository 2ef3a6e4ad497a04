package fingerprint

import (
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// readHost reads what needs no NVIDIA tool.
func (r *reader) readHost() {
	r.hardware.CPU, r.hardware.Sockets = parseCPU(r.need("CPU", "/proc/cpuinfo"))
	if r.hardware.CPU == "" {
		r.cannot("CPU", "/proc/cpuinfo names no model")
	}
	if r.hardware.Sockets == 0 {
		r.hardware.Sockets = r.packages()
	}
	if nodes, ok := r.text("/sys/devices/system/node/has_cpu"); ok {
		r.hardware.NUMANodes = countList(nodes)
	} else {
		r.cannot("NUMA nodes", "/sys/devices/system/node/has_cpu is missing")
	}
	r.hardware.MemoryMiB = parseMemory(r.need("memory", "/proc/meminfo"))
	r.stack.Kernel = r.need("kernel", "/proc/sys/kernel/osrelease")
	r.readHostSettings()
}

func (r *reader) readHostSettings() {
	if boot, ok := r.text("/proc/sys/kernel/random/boot_id"); ok {
		r.set("boot_id", boot)
	}
	if line, ok := r.text("/proc/cmdline"); ok {
		r.set("kernel.iommu_parameters", iommuParameters(line))
	}
	if units, err := fs.ReadDir(r.files, "sys/class/iommu"); err == nil {
		r.set("iommu", map[bool]string{true: "active", false: "off"}[len(units) > 0])
	}
	if governor, ok := r.text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"); ok {
		r.set("cpu.governor", governor)
	}
	if size, err := r.source.Size("/dev/shm"); err != nil {
		r.cannot("size of /dev/shm", err)
	} else {
		r.set("shm_size_mib", strconv.FormatInt(size>>20, 10))
	}
	r.set("container", r.container())
}

// readDriver reads what the kernel module tells of itself.
func (r *reader) readDriver() {
	version, ok := r.text("/proc/driver/nvidia/version")
	if !ok {
		return
	}
	driver, kind := parseModule(version)
	r.stack.Driver = driver
	r.set("driver.module", kind)
	if parameters, ok := r.text("/proc/driver/nvidia/params"); ok {
		r.set("driver.parameters", parseParameters(parameters))
	}
}

// machineID names this installation. Containers often have none: then the host
// name has to do, and is said to.
func (r *reader) machineID() string {
	for _, name := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if id, ok := r.text(name); ok && id != "" && id != "uninitialized" {
			return id
		}
	}
	r.cannot("machine id", "there is none: the host name stands in for it, which another container may not share")
	name, _ := r.text("/proc/sys/kernel/hostname")
	return name
}

// parseCPU reads model and sockets from /proc/cpuinfo. Virtual machines may leave
// out the sockets, Arm names its parts by number.
func parseCPU(text string) (model string, sockets int) {
	var implementer, part string
	packages := map[string]bool{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.Join(strings.Fields(value), " ")
		switch strings.TrimSpace(name) {
		case "model name":
			model = value
		case "physical id":
			packages[value] = true
		case "CPU implementer":
			implementer = value
		case "CPU part":
			part = value
		}
	}
	if model == "" && part != "" {
		model = "Arm " + implementer + " part " + part
	}
	return model, len(packages)
}

// packages counts sockets by sysfs.
func (r *reader) packages() int {
	names, err := fs.Glob(r.files, "sys/devices/system/cpu/cpu[0-9]*/topology/physical_package_id")
	if err != nil {
		return 0
	}
	ids := map[string]bool{}
	for _, name := range names {
		if id, ok := r.text(name); ok {
			ids[id] = true
		}
	}
	if len(ids) == 0 {
		r.cannot("sockets", "neither /proc/cpuinfo nor sysfs tells them")
	}
	return len(ids)
}

// countList counts the numbers of a list such as "0-3,8". GPUs with memory of
// their own are NUMA nodes too, so only nodes with CPUs are asked for.
func countList(list string) int {
	count := 0
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(last); err != nil {
				continue
			}
		}
		if to >= from {
			count += to - from + 1
		}
	}
	return count
}

// parseMemory reads the total from /proc/meminfo, in MiB.
func parseMemory(text string) int64 {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			return number(strings.TrimSuffix(strings.TrimSpace(value), " kB")) >> 10
		}
	}
	return 0
}

// iommuParameters are those words of the kernel's command line that decide about
// P2P through the IOMMU.
func iommuParameters(line string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(line), func(word string) bool {
		return !strings.Contains(word, "iommu") && !strings.HasPrefix(word, "pcie_acs_override")
	}), " ")
}

var moduleVersion = regexp.MustCompile(`\b[0-9]{2,4}(?:\.[0-9]+)+\b`)

// parseModule reads /proc/driver/nvidia/version: the version, and whether the
// module is the open one.
func parseModule(text string) (version, kind string) {
	first, _, _ := strings.Cut(text, "\n")
	kind = "proprietary"
	if strings.Contains(first, "Open Kernel Module") {
		kind = "open"
	}
	return moduleVersion.FindString(first), kind
}

// parameterNames are the driver's parameters that decide about links between
// GPUs, and those that hold switches set by hand.
var parameterNames = []string{
	"DmaRemapPeerMmio", "EnablePCIERelaxedOrderingMode", "GrdmaPciTopoCheckOverride", "NvLinkDisable",
	"RegistryDwords", "RegistryDwordsPerDevice",
}

// parseParameters reads /proc/driver/nvidia/params: those of parameterNames that
// are not empty, as name=value.
func parseParameters(text string) string {
	var found []string
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.Trim(strings.TrimSpace(value), `"`)
		if value != "" && slices.Contains(parameterNames, name) {
			found = append(found, name+"="+value)
		}
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}

// containerMarks are parts of cgroup paths that tell the runtime.
var containerMarks = []string{"kubepods", "docker", "libpod", "containerd", "lxc", "garden"}

// container names the kind of container that this process is in, or "none".
func (r *reader) container() string {
	if _, err := fs.Stat(r.files, ".dockerenv"); err == nil {
		return "docker"
	}
	if _, err := fs.Stat(r.files, "run/.containerenv"); err == nil {
		return "podman"
	}
	if kind, ok := r.text("/run/systemd/container"); ok && kind != "" {
		return kind
	}
	// With a cgroup namespace the path tells nothing; the mount of the root does.
	cgroup, _ := r.text("/proc/self/cgroup")
	mounts, _ := r.text("/proc/self/mountinfo")
	for _, mark := range containerMarks {
		if strings.Contains(cgroup, mark) || strings.Contains(rootMount(mounts), mark) {
			return mark
		}
	}
	return "none"
}

// rootMount is the line of mountinfo about "/".
func rootMount(mounts string) string {
	for line := range strings.Lines(mounts) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == "/" {
			return line
		}
	}
	return ""
}
