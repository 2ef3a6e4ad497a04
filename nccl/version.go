package nccl

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Version is a release of NCCL. The zero value means that it is not known.
type Version struct {
	Major, Minor, Patch int
}

var (
	versionText  = regexp.MustCompile(`(?:^|[^\d.]\.?)(\d{1,2})\.(\d{1,3})(?:\.(\d{1,3}))?(?:$|[^\d.])`)
	versionTuple = regexp.MustCompile(`^\(\s*(\d{1,2})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)$`)
	versionCode  = regexp.MustCompile(`^\d{4,5}$`)
)

// ParseVersion reads a version as NCCL and the programs around it write it:
// "2.28.9", "2.28", "2.28.9-1", "NCCL version 2.28.9+cuda13.0", the tuple
// "(2, 28, 9)" of PyTorch, and the code 22809 of nccl.h and nccl-tests.
func ParseVersion(text string) (Version, error) {
	text = strings.TrimSpace(text)
	if versionCode.MatchString(text) {
		code, err := strconv.Atoi(text)
		if err != nil {
			return Version{}, fmt.Errorf("nccl version code %q: %w", text, err)
		}
		return versionFromCode(code), nil
	}
	match := versionTuple.FindStringSubmatch(text)
	if match == nil {
		match = versionText.FindStringSubmatch(text)
	}
	if match == nil {
		return Version{}, fmt.Errorf("nccl version %q is not understood: write it like 2.28.9 or 22809", text)
	}
	var numbers [3]int
	for i, digits := range match[1:] {
		if digits == "" {
			continue
		}
		n, err := strconv.Atoi(digits)
		if err != nil {
			return Version{}, fmt.Errorf("nccl version %q: %w", text, err)
		}
		numbers[i] = n
	}
	version := Version{numbers[0], numbers[1], numbers[2]}
	if !version.Known() {
		return Version{}, fmt.Errorf("nccl version %q is not a release", text)
	}
	return version, nil
}

// versionFromCode undoes NCCL_VERSION of nccl.h: X*10000+Y*100+Z, and
// X*1000+Y*100+Z up to 2.8.
func versionFromCode(code int) Version {
	if code < 10000 {
		return Version{code / 1000, code / 100 % 10, code % 100}
	}
	return Version{code / 10000, code / 100 % 100, code % 100}
}

// Known reports whether the version is known.
func (v Version) Known() bool { return v != Version{} }

// Compare returns -1, 0 or 1 as v is before, the same as or after w.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
}

// AtLeast reports whether the version is known and w or later.
func (v Version) AtLeast(w Version) bool { return v.Known() && v.Compare(w) >= 0 }

// Before reports whether the version is known and before w.
func (v Version) Before(w Version) bool { return v.Known() && v.Compare(w) < 0 }

// String returns "2.28.9", or "unknown".
func (v Version) String() string {
	if !v.Known() {
		return "unknown"
	}
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// Range is a span of versions. A zero bound is open.
type Range struct {
	Since Version // the first version that is in
	Until Version // the first version that is out again
}

// Covers reports whether v lies in the range. An unknown version lies in a
// range that is open at both ends and is Unknown for all others.
func (r Range) Covers(v Version) Tri {
	if !v.Known() {
		if r == (Range{}) {
			return Yes
		}
		return Unknown
	}
	inside := v.Compare(r.Since) >= 0 && (!r.Until.Known() || v.Compare(r.Until) < 0)
	return TriOf(inside)
}

// String returns "all versions", "2.24.0 and later", "before 2.24.0" or
// "2.19.0 to before 2.22.0".
func (r Range) String() string {
	switch {
	case !r.Since.Known() && !r.Until.Known():
		return "all versions"
	case !r.Until.Known():
		return r.Since.String() + " and later"
	case !r.Since.Known():
		return "before " + r.Until.String()
	default:
		return r.Since.String() + " to before " + r.Until.String()
	}
}

// release is shorthand for the catalogue and the rule table.
func release(minor int, patch ...int) Version {
	v := Version{Major: 2, Minor: minor}
	if len(patch) > 0 {
		v.Patch = patch[0]
	}
	return v
}

// Tri is a fact that may not be known.
type Tri int8

// The zero value of a fact is Unknown.
const (
	Unknown Tri = iota
	No
	Yes
)

// TriOf turns a known truth into a Tri.
func TriOf(truth bool) Tri {
	if truth {
		return Yes
	}
	return No
}

// String returns "unknown", "no" or "yes".
func (t Tri) String() string {
	switch t {
	case Yes:
		return "yes"
	case No:
		return "no"
	default:
		return "unknown"
	}
}
