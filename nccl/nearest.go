package nccl

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Recognition says what a variable's name is taken for.
type Recognition string

// The recognitions of a name.
const (
	// KnownName is in the catalogue.
	KnownName Recognition = "known"
	// NearName is one or two letters away from a known name: a misspelling.
	NearName Recognition = "near"
	// UnknownName begins like NCCL's, but is not in the catalogue.
	UnknownName Recognition = "unknown"
	// ForeignName has nothing to do with NCCL.
	ForeignName Recognition = "foreign"
)

// nearDistance is the number of edits up to which a name is a misspelling.
const nearDistance = 2

// Nearest returns the known name with the fewest edits to name, and their
// number: 0 when the name itself is known. It returns "" and a negative number
// when none is within two edits.
func Nearest(name string) (nearest string, distance int) {
	if find(name) != nil {
		return name, 0
	}
	nearest, distance = "", -1
	upper := strings.ToUpper(name)
	for i := range catalogue {
		known := catalogue[i].Name
		if gap := len(known) - len(upper); gap > nearDistance || gap < -nearDistance {
			continue
		}
		edits := levenshtein.ComputeDistance(upper, known)
		if upper != name {
			edits = max(edits, 1)
		}
		if edits <= nearDistance && (distance < 0 || edits < distance) {
			nearest, distance = known, edits
		}
	}
	return nearest, distance
}

// Recognize tells a known name from a misspelt, an unknown and a foreign one,
// with the known name that it stands for or resembles. NCCL reports neither
// misspelt nor unknown names: they have no effect, in silence.
func Recognize(name string) (Recognition, string) {
	nearest, distance := Nearest(name)
	switch {
	case distance == 0:
		return KnownName, nearest
	case distance > 0:
		return NearName, nearest
	case strings.HasPrefix(strings.ToUpper(name), "NCCL_"):
		return UnknownName, ""
	default:
		return ForeignName, ""
	}
}
