package servers

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Version orders the releases of one server. The zero Version is unknown.
type Version struct {
	text  string
	parts []int // the release numbers
	// post is above 0 for a post-release ("0.4.10.post2") and below 0 for one
	// before the release ("1.2.0rc1", "0.10.1.dev2081").
	post int
}

var (
	dottedVersion = regexp.MustCompile(`^v?(\d+(?:\.\d+)+)(?:[.-]?(post|rc|a|b|dev)(\d*))?`)
	buildVersion  = regexp.MustCompile(`(?:^b|^version: |\(build )(\d{3,})\b`)
)

// oldestBuild is the least build number that means something: llama.cpp counts
// the commits of the checkout, which is 1 in a shallow clone.
const oldestBuild = 100

// ParseVersion reads what servers say of themselves: "0.5.18",
// "0.10.1.dev2081+gc44ef9fc0", "1.2.0rc1", "b10434-7e4c0a9", "version: 10434
// (7e4c0a9)", "version: 0.1.0-dev (build 10573, commit 7e4c0a9)". It is false for what orders nothing.
func ParseVersion(text string) (Version, bool) {
	text = strings.TrimSpace(text)
	if groups := dottedVersion.FindStringSubmatch(text); groups != nil {
		v := Version{text: text}
		for part := range strings.SplitSeq(groups[1], ".") {
			number, err := strconv.Atoi(part)
			if err != nil {
				return Version{}, false
			}
			v.parts = append(v.parts, number)
		}
		switch number, _ := strconv.Atoi(groups[3]); groups[2] {
		case "":
		case "post":
			v.post = max(number, 1)
		default:
			v.post = -1
		}
		return v, true
	}
	if groups := buildVersion.FindStringSubmatch(text); groups != nil {
		if number, err := strconv.Atoi(groups[1]); err == nil && number >= oldestBuild {
			return Version{text: text, parts: []int{number}}, true
		}
	}
	return Version{}, false
}

// Known tells whether there is a version at all.
func (v Version) Known() bool { return len(v.parts) > 0 }

func (v Version) String() string { return v.text }

// Before tells whether v is older than other. Missing parts are 0.
func (v Version) Before(other Version) bool {
	for i := range max(len(v.parts), len(other.parts)) {
		if c := cmp.Compare(v.part(i), other.part(i)); c != 0 {
			return c < 0
		}
	}
	return v.post < other.post
}

func (v Version) part(i int) int {
	if i < len(v.parts) {
		return v.parts[i]
	}
	return 0
}

// Span is a range of versions: from Since on, and before Until. Either may be
// empty.
type Span struct{ Since, Until string }

// Holds tells whether the version lies in the span. An unknown version counts as
// the newest: that is the one a table describes without its differences.
func (s Span) Holds(v Version) bool {
	if !v.Known() {
		return s.Until == ""
	}
	if since, ok := ParseVersion(s.Since); ok && v.Before(since) {
		return false
	}
	until, ok := ParseVersion(s.Until)
	return !ok || v.Before(until)
}

// Difference is what sets some versions of a server apart from its table.
type Difference struct {
	// ID names it in tests and documentation: "S-NCCLWRITTEN".
	ID string
	Span
	// Summary says what is different, for people.
	Summary string
	// Apply changes a copy of the kind, nil when only people need to know. It must
	// replace slices and maps and never write into them: the original shares them.
	Apply func(*Kind)
}

// At returns the kind as it is at that version, and the differences that hold.
// An unknown version is the newest.
func (k *Kind) At(version Version) (*Kind, []Difference) {
	at := *k
	var holding []Difference
	for _, difference := range k.Differences {
		if !difference.Holds(version) {
			continue
		}
		holding = append(holding, difference)
		if difference.Apply != nil {
			difference.Apply(&at)
		}
	}
	return &at, holding
}

// replaceWritten returns the list with each variable of that name changed.
func replaceWritten(list []WrittenVariable, change func(*WrittenVariable), names ...string) []WrittenVariable {
	changed := slices.Clone(list)
	for i := range changed {
		if slices.Contains(names, changed[i].Name) {
			change(&changed[i])
		}
	}
	return changed
}

// withEffective returns the pages with some facts standing elsewhere on the first.
func withEffective(pages []Info, places map[string]string) []Info {
	changed := slices.Clone(pages)
	changed[0].Effective = maps.Clone(changed[0].Effective)
	maps.Copy(changed[0].Effective, places)
	return changed
}
