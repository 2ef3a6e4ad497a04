package fingerprint

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const smi = "nvidia-smi"

// errNoTool means that nvidia-smi is not installed: no NVIDIA driver here.
var errNoTool = errors.New("nvidia-smi is not installed")

// runSMI runs nvidia-smi and turns its failures into errors that say what to do.
func runSMI(ctx context.Context, source Source, args ...string) (string, error) {
	output, err := source.Run(ctx, smi, args...)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", errNoTool
	case err != nil:
		return "", err
	case output.Status != 0:
		return "", &smiError{status: output.Status, text: output.Text}
	}
	return output.Text, nil
}

// smiError is a refusal of nvidia-smi.
type smiError struct {
	status int
	text   string
}

func (e *smiError) Error() string {
	advice := ""
	switch {
	case strings.Contains(e.text, "couldn't communicate"):
		advice = "; the kernel module is not loaded or does not fit: see `dmesg`"
	case strings.Contains(e.text, "version mismatch"):
		advice = "; the driver was upgraded under the running kernel module: reboot"
	}
	return fmt.Sprintf("%s ended with status %d: %s%s", smi, e.status, abridge(e.text), advice)
}

// invalidField is how nvidia-smi refuses a field that its driver does not know.
var invalidField = regexp.MustCompile(`Field "([^"]+)" is not a valid field`)

// table is the answer to a query: by GPU index, then by field.
type table struct {
	rows map[int]map[string]string
	// odd are lines that are no row, such as that of a GPU that fell off the bus.
	odd []string
	// unknown are fields that this driver does not have.
	unknown []string
}

// query asks for fields of every GPU. One unknown field makes nvidia-smi refuse
// the whole question, so it is asked again without that field.
func query(ctx context.Context, source Source, fields ...string) (table, error) {
	var unknown []string
	for {
		// The index comes first, to join the answers of several questions.
		asked := append([]string{"index"}, fields...)
		text, err := runSMI(ctx, source, "--query-gpu="+strings.Join(asked, ","), "--format=csv,noheader,nounits")
		var refused *smiError
		if errors.As(err, &refused) {
			match := invalidField.FindStringSubmatch(refused.text)
			if match != nil && slices.Contains(fields, match[1]) {
				unknown = append(unknown, match[1])
				fields = slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return f == match[1] })
				continue
			}
		}
		if err != nil {
			return table{}, err
		}
		t := parseQuery(text, asked)
		t.unknown = unknown
		return t, nil
	}
}

// parseQuery reads rows of comma-separated values without heading or units. A line
// that is no row does not spoil the others.
func parseQuery(text string, fields []string) table {
	t := table{rows: map[int]map[string]string{}}
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		reader := csv.NewReader(strings.NewReader(line))
		reader.TrimLeadingSpace, reader.LazyQuotes = true, true
		values, err := reader.Read()
		if err != nil || len(values) != len(fields) {
			t.odd = append(t.odd, abridge(line))
			continue
		}
		index, err := strconv.Atoi(strings.TrimSpace(values[0]))
		if _, twice := t.rows[index]; err != nil || index < 0 || twice {
			t.odd = append(t.odd, abridge(line))
			continue
		}
		row := make(map[string]string, len(fields))
		for i, field := range fields {
			row[field] = strings.TrimSpace(values[i])
		}
		t.rows[index] = row
	}
	return t
}

// indices are those of the GPUs, ascending.
func (t table) indices() []int {
	indices := make([]int, 0, len(t.rows))
	for index := range t.rows {
		indices = append(indices, index)
	}
	slices.Sort(indices)
	return indices
}

// absent says whether a value stands for none. nvidia-smi writes the reason in
// brackets.
func absent(value string) bool {
	return value == "" || value == "N/A" || strings.HasPrefix(value, "[")
}

// faulty says whether a value is absent because something is wrong, rather than
// because the GPU has no such thing.
func faulty(value string) bool {
	switch value {
	case "", "N/A", "[N/A]", "[Not Supported]", "[Not Found]", "[Requested functionality has been deprecated]":
		return false
	}
	return absent(value)
}

// number reads a whole number; 0 when there is none.
func number(value string) int64 {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// versionLine matches the `name : value` lines of `nvidia-smi --version`.
var versionLine = regexp.MustCompile(`(?m)^\s*([A-Za-z][A-Za-z -]*?)\s*:\s*([0-9]+(?:\.[0-9]+)+)\s*$`)

// parseVersions reads `nvidia-smi --version`. From driver 610 on, the lines DRIVER
// and CUDA only point to those that took their place.
func parseVersions(text string) (driver, cuda string) {
	found := map[string]string{}
	for _, match := range versionLine.FindAllStringSubmatch(text, -1) {
		name := strings.TrimSuffix(strings.ToLower(match[1]), " version")
		found[name] = match[2]
	}
	return firstOf(found, "kmd", "driver"), firstOf(found, "cuda umd", "cuda")
}

func firstOf(values map[string]string, names ...string) string {
	for _, name := range names {
		if value := values[name]; value != "" {
			return value
		}
	}
	return ""
}

// bannerCUDA matches the heading of plain nvidia-smi, for drivers that do not
// know --version.
var bannerCUDA = regexp.MustCompile(`CUDA (?:UMD )?Version:\s*([0-9]+(?:\.[0-9]+)+)`)

// parseBanner reads the CUDA version from the heading of plain nvidia-smi.
func parseBanner(text string) string {
	if match := bannerCUDA.FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return ""
}

var (
	listedGPU = regexp.MustCompile(`^GPU ([0-9]{1,3}):`)
	listedMIG = regexp.MustCompile(`^\s+MIG (\S+)\s+Device\s+[0-9]+:`)
)

// parseMIG reads `nvidia-smi -L`: the profiles of the MIG devices of each GPU.
func parseMIG(text string) map[int][]string {
	profiles := map[int][]string{}
	gpu := -1
	for line := range strings.Lines(text) {
		if match := listedGPU.FindStringSubmatch(line); match != nil {
			gpu, _ = strconv.Atoi(match[1])
		} else if match := listedMIG.FindStringSubmatch(line); match != nil && gpu >= 0 {
			profiles[gpu] = append(profiles[gpu], match[1])
		}
	}
	return profiles
}
