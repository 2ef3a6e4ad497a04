package nccl

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// numberFault says why a text is no integer, in words that fit after the text.
type numberFault struct {
	reason, suggestion string
}

var (
	decimalForm = regexp.MustCompile(`^\d+(?:_\d+)*$`)
	hexForm     = regexp.MustCompile(`^0[xX][0-9a-fA-F]+(?:_[0-9a-fA-F]+)*$`)
	octalForm   = regexp.MustCompile(`^0[oO][0-7]+(?:_[0-7]+)*$`)
	realForm    = regexp.MustCompile(`^\d+(?:\.\d*)?(?:[eE][+-]?\d{1,2})?$`)
	suffixForm  = regexp.MustCompile(`^(\d+(?:_\d+)*(?:\.\d+)?)\s*([A-Za-z]+)$`)
)

// maxNumberText bounds the text of a number: longer ones are faults, not work.
const maxNumberText = 40

// booleanWords are the texts that YAML 1.1 or people take for truth values.
// NCCL reads each of them as 0.
var booleanWords = map[string]string{
	"true": "1", "yes": "1", "on": "1", "y": "1", "enable": "1", "enabled": "1",
	"false": "0", "no": "0", "off": "0", "n": "0", "disable": "0", "disabled": "0",
}

// binarySuffixes are the suffixes of nccl-tests and of IEC 80000-13. Both mean
// powers of two; a decimal kilobyte has no use in NCCL.
var binarySuffixes = map[string]uint{
	"b": 0, "k": 10, "ki": 10, "kib": 10, "m": 20, "mi": 20, "mib": 20, "g": 30, "gi": 30, "gib": 30,
}

// parseNumber reads an integer in any form that has one meaning: decimal, with
// underscores between digits, 0x hex, 0o octal, a whole number with a fraction
// or exponent as JSON writers print it, and with sizes a binary suffix.
func parseNumber(text string, sizes bool) (*big.Int, *numberFault) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return nil, &numberFault{"is empty: NCCL takes that for not set", "leave the variable out, or write unset in a list of choices"}
	}
	if strings.EqualFold(trimmed, "unset") || strings.EqualFold(trimmed, "null") || trimmed == "~" {
		return nil, &numberFault{"is no number", "leave the variable out"}
	}
	if digit, ok := booleanWords[strings.ToLower(trimmed)]; ok {
		return nil, &numberFault{"is a word, and NCCL reads words as 0", "write " + digit}
	}
	if len(trimmed) > maxNumberText {
		return nil, &numberFault{"is too long for a number", ""}
	}
	unsigned := strings.TrimLeft(trimmed, "+-")
	if len(trimmed)-len(unsigned) > 1 {
		return nil, &numberFault{"has more than one sign", ""}
	}
	value, fault := parseUnsigned(unsigned, sizes)
	if fault != nil {
		return nil, fault
	}
	if strings.HasPrefix(trimmed, "-") {
		value.Neg(value)
	}
	return value, nil
}

func parseUnsigned(text string, sizes bool) (*big.Int, *numberFault) {
	plain := strings.ReplaceAll(text, "_", "")
	switch {
	case decimalForm.MatchString(text):
		if len(plain) > 1 && plain[0] == '0' {
			return nil, leadingZero(plain)
		}
		return mustBig(plain, 10), nil
	case hexForm.MatchString(text):
		return mustBig(plain[2:], 16), nil
	case octalForm.MatchString(text):
		return mustBig(plain[2:], 8), nil
	case realForm.MatchString(text):
		return wholeNumber(text)
	}
	if match := suffixForm.FindStringSubmatch(text); match != nil {
		return parseSize(match[1], match[2], sizes)
	}
	return nil, &numberFault{"is no number", ""}
}

// leadingZero refuses 010: C and YAML 1.1 read 8, YAML 1.2 and people 10.
func leadingZero(digits string) *numberFault {
	decimal := mustBig(digits, 10)
	octal, ok := new(big.Int).SetString(digits, 8)
	if !ok {
		return &numberFault{"has a leading zero, which NCCL reads as octal up to the first 8 or 9", "write " + decimal.String()}
	}
	return &numberFault{
		"is ambiguous: NCCL and YAML 1.1 read " + octal.String() + ", YAML 1.2 and people " + decimal.String(),
		"write " + decimal.String() + ", or " + octal.String(),
	}
}

func parseSize(number, suffix string, sizes bool) (*big.Int, *numberFault) {
	shift, known := binarySuffixes[strings.ToLower(suffix)]
	if !known {
		if unit := strings.ToLower(suffix); unit == "kb" || unit == "mb" || unit == "gb" {
			binary := number + strings.ToUpper(suffix[:1])
			return nil, &numberFault{
				"is ambiguous: " + suffix + " is decimal to some and binary to others",
				"write " + binary + "iB or " + binary,
			}
		}
		return nil, &numberFault{"is no number", ""}
	}
	if !sizes {
		return nil, &numberFault{"has a size suffix, but the variable is no size in bytes", "write the number alone"}
	}
	plain := strings.ReplaceAll(number, "_", "")
	if len(plain) > 1 && plain[0] == '0' && plain[1] != '.' {
		return nil, leadingZero(strings.SplitN(plain, ".", 2)[0])
	}
	exact, ok := new(big.Rat).SetString(plain)
	if !ok {
		return nil, &numberFault{"is no number", ""}
	}
	exact.Mul(exact, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), shift)))
	if !exact.IsInt() {
		return nil, &numberFault{"is no whole number of bytes", ""}
	}
	return new(big.Int).Set(exact.Num()), nil
}

// wholeNumber takes 1.6777216e+07, which a template or JSON step makes of a
// large integer. NCCL would read 1.
func wholeNumber(text string) (*big.Int, *numberFault) {
	if len(text) > 1 && text[0] == '0' && text[1] != '.' && text[1] != 'e' && text[1] != 'E' {
		return nil, &numberFault{"has a leading zero", ""}
	}
	exact, ok := new(big.Rat).SetString(strings.TrimSuffix(text, "."))
	if !ok {
		return nil, &numberFault{"is no number", ""}
	}
	if !exact.IsInt() {
		return nil, &numberFault{"is no whole number, and NCCL drops what follows the point", ""}
	}
	return new(big.Int).Set(exact.Num()), nil
}

// mustBig reads digits that a pattern has checked.
func mustBig(digits string, base int) *big.Int {
	value, _ := new(big.Int).SetString(digits, base)
	return value
}

// asRead is the number that NCCL itself makes of a raw environment value:
// strtoll with base 0, trailing text dropped. Source: src/misc/param.cc.
func asRead(raw string) int64 {
	text := strings.TrimLeft(raw, " \t\n\v\f\r")
	sign := ""
	if text != "" && (text[0] == '-' || text[0] == '+') {
		sign, text = strings.TrimSuffix(text[:1], "+"), text[1:]
	}
	base, digits := 10, "0123456789"
	switch {
	case len(text) > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') && strings.ContainsAny(text[2:3], "0123456789abcdefABCDEF"):
		base, digits, text = 16, "0123456789abcdefABCDEF", text[2:]
	case text != "" && text[0] == '0':
		base, digits = 8, "01234567"
	}
	end := 0
	for end < len(text) && strings.IndexByte(digits, text[end]) >= 0 {
		end++
	}
	n, err := strconv.ParseInt(sign+text[:end], base, 64)
	if err != nil {
		return 0
	}
	return n
}
