package nccl

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// ConfSetting is one line of an nccl.conf file, as NCCL reads it: split at the
// first equals sign, blanks kept on both sides, no quotes, no trailing comment.
type ConfSetting struct {
	Name, Value string
	Line        int
	// Shadowed: an earlier line set the name, and the first one wins.
	Shadowed bool
	// Faults says what the line does that its writer cannot have meant.
	Faults []string
}

const (
	// confText is the longest name or value; NCCL cuts the rest off.
	confText = 1023
	// confLine is the longest line that is read here.
	confLine = 1 << 16
)

// ParseConf reads an nccl.conf file. Lines that begin with # and lines without
// an equals sign are skipped. The process environment still wins over every
// line, and NAME= counts as set and empty. A line above 64 KiB is an error.
// Source: NVIDIA/nccl src/misc/param.cc (setEnvFile).
func ParseConf(r io.Reader) ([]ConfSetting, error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, confLine)
	scanner.Split(splitLines)
	var settings []ConfSetting
	seen := map[string]bool{}
	number := 0
	for scanner.Scan() {
		number++
		line := scanner.Text()
		name, value, found := strings.Cut(line, "=")
		if strings.HasPrefix(line, "#") || !found || name == "" {
			continue
		}
		setting := ConfSetting{Name: cut(name), Value: cut(value), Line: number, Faults: confFaults(name, value)}
		setting.Shadowed = seen[setting.Name]
		seen[setting.Name] = true
		settings = append(settings, setting)
	}
	if err := scanner.Err(); err != nil {
		return settings, fmt.Errorf("read nccl.conf at line %d: %w", number+1, err)
	}
	return settings, nil
}

// splitLines is bufio.ScanLines, but keeps a carriage return: so does NCCL
// before 2.30.
func splitLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

func cut(text string) string { return text[:min(len(text), confText)] }

func confFaults(name, value string) []string {
	var faults []string
	add := func(condition bool, text string) {
		if condition {
			faults = append(faults, text)
		}
	}
	text := strings.TrimSuffix(value, "\r")
	add(strings.TrimSpace(name) != name, "blanks around the name belong to the name")
	add(strings.HasPrefix(strings.TrimSpace(name), "export "), "export belongs to the name")
	add(text != value, "a carriage return at the end belongs to the value before NCCL 2.30")
	add(strings.TrimSpace(text) != text, "blanks around the value belong to the value")
	add(strings.HasPrefix(text, `"`) || strings.HasPrefix(text, `'`), "quotes belong to the value")
	add(strings.Contains(text, " #"), "a comment after the value belongs to the value")
	add(text == "", "an empty value blocks later files, and counts as absent for integers")
	add(len(name) > confText || len(value) > confText, "text after 1023 bytes is cut off")
	return faults
}

// WriteConf writes settings as an nccl.conf file, sorted by name, below comment
// lines. It refuses secrets and what the format cannot hold.
func WriteConf(w io.Writer, comments []string, settings map[string]string) error {
	var b strings.Builder
	for _, comment := range comments {
		for line := range strings.SplitSeq(comment, "\n") {
			b.WriteString("# " + line + "\n")
		}
	}
	for _, name := range sortedNames(settings) {
		value := settings[name]
		if name == "" || strings.ContainsAny(name, "=#\n\r\x00") || strings.ContainsAny(value, "\n\r\x00") {
			return fmt.Errorf("write nccl.conf: %q: line ends and NUL cannot be written, nor = and # in a name", name)
		}
		if variable := find(name); variable != nil && variable.Secret {
			return fmt.Errorf("write nccl.conf: %s is a secret and is not written", name)
		}
		if faults := confFaults(name, value); len(faults) > 0 {
			return fmt.Errorf("write nccl.conf: %s: %s", name, strings.Join(faults, "; "))
		}
		b.WriteString(name + "=" + value + "\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write nccl.conf: %w", err)
	}
	return nil
}

// ConfFiles returns the files that NCCL reads for a process, in order: a value
// of an earlier file wins. NCCL_CONF_FILE (from 2.23 on) replaces the file in
// the home directory, which is the account's up to 2.29 and $HOME from 2.30 on;
// with the version unknown both are returned. /etc/nccl.conf is always last.
// Missing files are silent. Source: NVIDIA/nccl src/misc/param.cc.
func ConfFiles(v Version, environment map[string]string, accountHome string) []string {
	const system = "/etc/nccl.conf"
	if file := environment["NCCL_CONF_FILE"]; file != "" && !v.Before(release(23)) {
		return []string{file, system}
	}
	var homes []string
	if home := environment["HOME"]; home != "" && !v.Before(release(30)) {
		homes = append(homes, home)
	}
	if accountHome != "" && !v.AtLeast(release(30)) && !slices.Contains(homes, accountHome) {
		homes = append(homes, accountHome)
	}
	files := make([]string, 0, len(homes)+1)
	for _, home := range homes {
		files = append(files, filepath.Join(home, ".nccl.conf"))
	}
	return append(files, system)
}
