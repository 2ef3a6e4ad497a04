package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ncclVersion is a release of NCCL.
type ncclVersion struct{ major, minor, patch int }

func parseNCCLVersion(text string) (ncclVersion, error) {
	var v ncclVersion
	if n, err := fmt.Sscanf(text, "%d.%d.%d", &v.major, &v.minor, &v.patch); err != nil || n != 3 || v.major != 2 {
		return v, fmt.Errorf("--sim-nccl %q is not a version of NCCL: expected three numbers such as 2.28.9", text)
	}
	return v, nil
}

func (v ncclVersion) atLeast(major, minor, patch int) bool {
	if v.major != major {
		return v.major > major
	}
	if v.minor != minor {
		return v.minor > minor
	}
	return v.patch >= patch
}

func (v ncclVersion) String() string { return fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.patch) }

// maxChannels is NCCL's MAXCHANNELS.
func (v ncclVersion) maxChannels() int {
	if v.atLeast(2, 25, 0) {
		return 64
	}
	return 32
}

// strtoll reads an integer like C's strtoll with base 0: leading space, a sign,
// 0x for hexadecimal, 0 for octal, and trailing text dropped without a word. So
// "16M" is 16, "010" is 8 and "off" is 0. It is false when the number does not
// fit into 64 bits.
func strtoll(text string) (int64, bool) {
	text = strings.TrimLeft(text, " \t\n\v\f\r")
	sign := ""
	if text != "" && (text[0] == '-' || text[0] == '+') {
		sign, text = strings.TrimPrefix(text[:1], "+"), text[1:]
	}
	base, digits := 10, "0123456789"
	switch {
	case len(text) > 2 && (text[:2] == "0x" || text[:2] == "0X") && isHex(text[2]):
		base, digits, text = 16, "0123456789abcdefABCDEF", text[2:]
	case strings.HasPrefix(text, "0"):
		base, digits = 8, "01234567"
	}
	end := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune(digits, r) })
	if end >= 0 {
		text = text[:end]
	}
	if text == "" {
		return 0, true
	}
	value, err := strconv.ParseInt(sign+text, base, 64)
	return value, err == nil
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// ncclEnvironment reads variables as NCCL does and notes what NCCL would log
// under the ENV subsystem.
type ncclEnvironment struct {
	values map[string]string
	log    []ncclLine
}

// ncclLine is one line of NCCL's log without its prefix.
type ncclLine struct {
	warn      bool
	subsystem string // ENV, INIT, GRAPH, TUNING, P2P, COLL; "" prints at every level of detail
	text      string
}

func (e *ncclEnvironment) info(subsystem, format string, args ...any) {
	e.log = append(e.log, ncclLine{subsystem: subsystem, text: fmt.Sprintf(format, args...)})
}

// text returns a string variable. Empty counts as unset.
func (e *ncclEnvironment) text(name string) string {
	value := e.values[name]
	if value != "" {
		e.info("ENV", "%s set by environment to %s", name, value)
	}
	return value
}

// integer returns an integer variable; false when it is unset, empty or out of
// range.
func (e *ncclEnvironment) integer(name string) (int64, bool) {
	text := e.values[name]
	if text == "" {
		return 0, false
	}
	value, ok := strtoll(text)
	if !ok {
		e.info("ALL", "Invalid value %s for %s, using default %d.", text, name, -2)
		return 0, false
	}
	e.info("ENV", "%s set by environment to %d.", name, value)
	return value, true
}

// integer32 is integer as most of NCCL stores it: cut to 32 bits, so that 2^31
// and above turn negative.
func (e *ncclEnvironment) integer32(name string) (int, bool) {
	value, ok := e.integer(name)
	return int(int32(value & math.MaxUint32)), ok
}

// is tells whether an integer variable has that value.
func (e *ncclEnvironment) is(name string, value int64) bool {
	got, ok := e.integer(name)
	return ok && got == value
}

// oldLevels maps the numbers that NCCL_P2P_LEVEL took in old releases.
var oldLevels = []pathType{pathLOC, pathPIX, pathPXB, pathPHB, pathSYS, pathSYS}

// p2pLevel returns how far apart GPUs may be to talk directly. Names count in
// upper case only; anything not understood is ignored without a word.
func (e *ncclEnvironment) p2pLevel(version ncclVersion, m machine) pathType {
	if e.is("NCCL_P2P_DISABLE", 1) {
		return pathLOC
	}
	value := e.values["NCCL_P2P_LEVEL"]
	level := pathType(-1)
	for path, name := range pathNames {
		if value == name && pathKnown(pathType(path), version) {
			level = pathType(path)
		}
	}
	if level < 0 && value != "" && value[0] >= '0' && value[0] <= '9' {
		old, _ := strtoll(value)
		level = oldLevels[min(old, int64(len(oldLevels)-1))]
	}
	if level < 0 {
		return m.defaultLevel(version)
	}
	e.info("ALL", "NCCL_P2P_LEVEL set by environment to %s", pathNames[level])
	return level
}

// pathKnown tells whether the release has a name for the path.
func pathKnown(path pathType, version ncclVersion) bool {
	switch path {
	case pathC2C:
		return version.atLeast(2, 26, 0)
	case pathP2C:
		return version.atLeast(2, 27, 0)
	default:
		return true
	}
}

// threads reads a thread count with NCCL's clamps: not a multiple of 32 counts
// as the maximum (src/graph/tuning.cc, getNthreads).
func (e *ncclEnvironment) threads(name string, least, most, standard int) int {
	value, ok := e.integer32(name)
	switch {
	case !ok || value <= 0:
		return standard
	case value%32 != 0:
		e.info("GRAPH", "Invalid %s %d (must be a multiple of 32)", name, value)
		return most
	case value > most:
		e.info("GRAPH", "Invalid %s %d (maximum %d).", name, value, most)
		return most
	case value < least:
		e.info("GRAPH", "Invalid %s %d (minimum %d).", name, value, least)
		return least
	default:
		return value
	}
}
