package nccl

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Reading says how Canonicalize takes a value.
type Reading struct {
	// Quoted: the text stood in quotes, so that "off" is text and not a
	// truth value. It matters to variables that hold text.
	Quoted bool
	// Unsafe admits values outside the range that is known to give right
	// results. They are still checked for form.
	Unsafe bool
}

// ValueError refuses a value. Callers add where it stood.
type ValueError struct {
	Name       string
	Value      string
	Reason     string // completes "NAME: "value" ..."
	Allowed    string // what is taken, empty when that is no short list
	Suggestion string // what to write instead, empty when there is no one answer
	// NeedsUnsafe: an explicit unsafe opt-in would admit the value.
	NeedsUnsafe bool
}

// Error names the variable, the value, the reason, what is allowed and what to do.
func (e *ValueError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %q %s", e.Name, e.Value, e.Reason)
	if e.Allowed != "" {
		fmt.Fprintf(&b, "; allowed: %s", e.Allowed)
	}
	if e.Suggestion != "" {
		fmt.Fprintf(&b, "; %s", e.Suggestion)
	}
	if e.NeedsUnsafe {
		b.WriteString("; or declare the knob unsafe")
	}
	return b.String()
}

// Canonicalize turns the text of a value into its one canonical form. The
// result depends on no NCCL version: 16777216, 16M, 16MiB, 0x1000000 and
// 1.6777216e+07 are all 16777216, tree is Tree, 4 is SYS for a level.
//
// Decided where usage differs: a suffix K, M or G is binary, as in nccl-tests;
// KB, MB and GB are refused as ambiguous; a leading zero is refused, 0o20 is
// 16; underscores between digits are dropped; a level must be upper case,
// because NCCL ignores any other; words such as off are never numbers.
//
// A variable that is not in the catalogue is checked as text. Refusals are of
// type *ValueError.
func Canonicalize(name, raw string, reading Reading) (string, error) {
	variable := find(name)
	if variable == nil {
		variable = &Variable{Name: name, Kind: Text}
	}
	canonical, fault := variable.canonical(raw, reading)
	if fault != nil {
		fault.Name = name
		fault.Value = raw
		return "", fault
	}
	return canonical, nil
}

// find is Lookup without a copy.
func find(name string) *Variable {
	i, ok := names[name]
	if !ok {
		return nil
	}
	return &catalogue[i]
}

func (variable *Variable) canonical(raw string, reading Reading) (string, *ValueError) {
	switch variable.Kind {
	case Integer, Bytes:
		return variable.canonicalInteger(raw, reading)
	case Switch:
		return variable.canonicalChoice(raw, []string{"0", "1"})
	case Choice:
		return variable.canonicalChoice(raw, variable.Values)
	case Level:
		return variable.canonicalLevel(raw)
	case List:
		return variable.canonicalList(raw)
	case Algorithms:
		return canonicalIntent(algorithmGrammar, raw)
	case Protocols:
		return canonicalIntent(protocolGrammar, raw)
	case Numbers:
		return canonicalThresholds(raw)
	default:
		return canonicalText(raw, reading)
	}
}

func (variable *Variable) canonicalInteger(raw string, reading Reading) (string, *ValueError) {
	n, fault := parseNumber(raw, variable.Kind == Bytes)
	if fault != nil {
		if _, word := booleanWords[strings.ToLower(strings.TrimSpace(raw))]; word {
			fault.suggestion = "write a number, or leave the variable out"
		}
		return "", &ValueError{Reason: fault.reason, Suggestion: fault.suggestion, Allowed: variable.Allowed()}
	}
	low, high := variable.bounds()
	if n.Cmp(big.NewInt(low)) < 0 || n.Cmp(big.NewInt(high)) > 0 {
		return "", &ValueError{Reason: "is out of range", Allowed: variable.Allowed()}
	}
	if !variable.Safe.contains(n.Int64()) && !reading.Unsafe {
		return "", &ValueError{Reason: "is not known to be safe: " + variable.Safe.Reason + " (" + variable.Safe.Source + ")",
			Allowed: variable.Safe.Allowed, NeedsUnsafe: true}
	}
	return n.String(), nil
}

// bounds are the values that NCCL can hold: it stores most integers in 32 bits.
func (variable *Variable) bounds() (low, high int64) {
	if variable.Min == 0 && variable.Max == 0 {
		return -1 << 31, maxInt32
	}
	return variable.Min, variable.Max
}

// Allowed says in words what a variable takes, empty when any text is.
func (variable Variable) Allowed() string {
	switch {
	case variable.Safe != nil:
		return variable.Safe.Allowed
	case variable.Kind == Switch:
		return "0 or 1"
	case variable.Kind == Choice || variable.Kind == Level:
		return orList(variable.Values)
	case variable.Kind == List:
		return "a list of " + orList(variable.Values)
	case variable.Kind == Algorithms || variable.Kind == Protocols:
		return "a list of " + orList(variable.grammar().names) + ", ^ before it excludes; for one function as allreduce:list"
	case variable.Kind == Numbers:
		return thresholdsAllowed
	case variable.Kind == Integer || variable.Kind == Bytes:
		low, high := variable.bounds()
		return fmt.Sprintf("%d to %d", low, high)
	default:
		return ""
	}
}

// orList joins words as "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// canonicalChoice takes one of the allowed words. Numbers may be written in
// any form of parseNumber; names in any case, as NCCL compares these names
// without regard to case.
func (variable *Variable) canonicalChoice(raw string, allowed []string) (string, *ValueError) {
	text := strings.TrimSpace(raw)
	for _, word := range allowed {
		if strings.EqualFold(text, word) {
			return word, nil
		}
	}
	n, fault := parseNumber(raw, false)
	if fault == nil && slices.Contains(allowed, n.String()) {
		return n.String(), nil
	}
	refusal := &ValueError{Reason: "is not taken", Allowed: orList(allowed)}
	if fault != nil && slices.Contains(allowed, "0") {
		refusal.Reason, refusal.Suggestion = fault.reason, fault.suggestion
	}
	return "", refusal
}

// legacyLevels is levelsOldToNew of NVIDIA/nccl src/graph/paths.cc.
var legacyLevels = []string{"LOC", "PIX", "PXB", "PHB", "SYS", "SYS"}

func (variable *Variable) canonicalLevel(raw string) (string, *ValueError) {
	text := strings.TrimSpace(raw)
	if slices.Contains(levels, text) {
		return text, nil
	}
	allowed := orList(levels)
	if upper := strings.ToUpper(text); slices.Contains(levels, upper) {
		return "", &ValueError{Reason: "is not upper case, and NCCL then ignores it without a word", Allowed: allowed, Suggestion: "write " + upper}
	}
	if old, err := strconv.Atoi(text); err == nil && old >= 0 && old < len(legacyLevels) && len(text) == 1 {
		return legacyLevels[old], nil
	}
	return "", &ValueError{Reason: "is no distance, and NCCL then ignores it without a word", Allowed: allowed}
}

func (variable *Variable) canonicalList(raw string) (string, *ValueError) {
	separator := variable.Separator
	if separator == "" {
		separator = ","
	}
	text := strings.TrimSpace(raw)
	exclude := ""
	if strings.HasPrefix(text, "^") {
		exclude, text = "^", text[1:]
	}
	var words []string
	for word := range strings.SplitSeq(text, separator) {
		word = strings.TrimSpace(word)
		i := slices.IndexFunc(variable.Values, func(known string) bool { return strings.EqualFold(known, word) })
		if place, err := strconv.Atoi(word); err == nil && variable.Numbered && place >= 0 && place < len(variable.Values) {
			i = place
		}
		if i < 0 {
			return "", &ValueError{Reason: fmt.Sprintf("has an unknown word %q", word), Allowed: variable.Allowed()}
		}
		if !slices.Contains(words, variable.Values[i]) {
			words = append(words, variable.Values[i])
		}
	}
	return exclude + strings.Join(words, separator), nil
}

// thresholdCount is the number of values that NCCL scans from
// NCCL_THREAD_THRESHOLDS. Source: NVIDIA/nccl src/graph/tuning.cc.
const thresholdCount = 6

const thresholdsAllowed = "six numbers with blanks between them: Tree LL, LL128, Simple, Ring LL, LL128, Simple"

func canonicalThresholds(raw string) (string, *ValueError) {
	fields := strings.Fields(raw)
	if len(fields) != thresholdCount {
		return "", &ValueError{Reason: fmt.Sprintf("has %d numbers", len(fields)), Allowed: thresholdsAllowed}
	}
	for i, field := range fields {
		n, fault := parseNumber(field, false)
		if fault != nil {
			return "", &ValueError{Reason: fmt.Sprintf("has %q, which %s", field, fault.reason), Allowed: thresholdsAllowed, Suggestion: fault.suggestion}
		}
		if n.Sign() < 1 || n.Cmp(big.NewInt(maxInt32)) > 0 {
			return "", &ValueError{Reason: fmt.Sprintf("has %q, which is out of range", field), Allowed: thresholdsAllowed}
		}
		fields[i] = n.String()
	}
	return strings.Join(fields, " "), nil
}

// canonicalText keeps text as it stands, since NCCL keeps every blank.
func canonicalText(raw string, reading Reading) (string, *ValueError) {
	switch {
	case raw == "":
		return "", &ValueError{Reason: "is empty", Suggestion: "leave the variable out, or write unset in a list of choices"}
	case strings.ContainsFunc(raw, unicode.IsControl):
		return "", &ValueError{Reason: "has a control character"}
	case strings.TrimSpace(raw) != raw:
		return "", &ValueError{Reason: "begins or ends with a blank, which NCCL keeps", Suggestion: "remove the blank"}
	case reading.Quoted:
		return raw, nil
	}
	if _, ok := booleanWords[strings.ToLower(raw)]; ok {
		return "", &ValueError{Reason: "is a truth value in YAML 1.1 and text in YAML 1.2", Suggestion: `put it in quotes if the text is meant`}
	}
	if len(raw) > 1 && raw[0] == '0' && decimalForm.MatchString(raw) {
		return "", &ValueError{Reason: "is a number with a leading zero, which parsers read in two ways", Suggestion: "put it in quotes if the text is meant"}
	}
	return raw, nil
}
