package spec

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Scalar is a single value as it is written, with its place. Its meaning is
// decided by what it is for.
type Scalar struct {
	Text   string
	Quoted bool
	Null   bool
	Position
}

func (s *Scalar) readNode(d *decoder, node ast.Node) {
	if scalar, ok := d.scalar(node); ok {
		*s = scalar
	}
}

// given reports whether the scalar stood in the file.
func (s Scalar) given() bool { return s.Line > 0 }

// truthWords are what YAML 1.1 reads as booleans and people mean as text.
var truthWords = map[string]bool{"on": true, "off": true, "yes": true, "no": true, "y": true, "n": true}

// ambiguous refuses an unquoted word whose meaning depends on who reads it.
func (s Scalar) ambiguous(c interface {
	fault(Position, string, ...any)
}) bool {
	if s.Quoted {
		return false
	}
	switch {
	case s.Null:
		c.fault(s.Position, "null is no value here; write unset for an absent variable, or quote it to mean the text")
	case truthWords[strings.ToLower(s.Text)]:
		c.fault(s.Position, "%s is a truth value to some YAML readers and text to others; write \"%s\" to mean the text, or 0 and 1 for a switch", s.Text, s.Text)
	case s.leadingZero():
		c.fault(s.Position, "%s is %s to some YAML readers and %s to people; write it without the leading zero, or as 0o%s for octal",
			s.Text, octal(s.Text), strings.TrimLeft(s.Text, "0"), strings.TrimLeft(s.Text, "0"))
	default:
		return false
	}
	return true
}

var leadingZeros = regexp.MustCompile(`^[+-]?0[0-9_]+$`)

func (s Scalar) leadingZero() bool { return leadingZeros.MatchString(s.Text) }

func octal(text string) string {
	number, err := strconv.ParseInt(text, 8, 64)
	if err != nil {
		return "an error"
	}
	return strconv.FormatInt(number, 10)
}

// float reads a finite number.
func (s Scalar) float() (float64, error) {
	number, err := strconv.ParseFloat(s.Text, 64)
	if err != nil || s.Quoted || math.IsNaN(number) || math.IsInf(number, 0) {
		return 0, fmt.Errorf("%q: want a finite number", s.Text)
	}
	return number, nil
}

// Duration is a span of time with its unit: d h m s ms, such as 45m, 1h30m or
// 1.5d.
type Duration struct {
	time.Duration
	Position
}

var (
	durationText = regexp.MustCompile(`^(\d+(?:\.\d+)?(?:d|h|ms|m|s))+$`)
	durationPart = regexp.MustCompile(`(\d+(?:\.\d+)?)(d|h|ms|m|s)`)
	units        = map[string]time.Duration{"d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second, "ms": time.Millisecond}
)

func (t *Duration) readNode(d *decoder, node ast.Node) {
	scalar, ok := d.scalar(node)
	if !ok {
		return
	}
	duration, err := parseDuration(scalar.Text)
	if err != nil {
		d.fault(scalar.Position, "%v", err)
		return
	}
	t.Duration, t.Position = duration, scalar.Position
}

func (t Duration) given() bool { return t.Line > 0 }

func parseDuration(text string) (time.Duration, error) {
	if number, err := strconv.ParseFloat(text, 64); err == nil {
		if number < 0 {
			return 0, fmt.Errorf("%q: a duration cannot be negative", text)
		}
		whole := strconv.FormatFloat(number, 'f', -1, 64)
		return 0, fmt.Errorf("%q has no unit; write %ss for seconds or %sm for minutes", text, whole, strconv.FormatFloat(math.Max(1, math.Round(number/60)), 'f', -1, 64))
	}
	if strings.HasPrefix(text, "-") {
		return 0, fmt.Errorf("%q: a duration cannot be negative", text)
	}
	if !durationText.MatchString(text) {
		return 0, fmt.Errorf("%q is not a duration; write a number and a unit of d, h, m, s or ms, such as 45m, 1h30m or 1.5d", text)
	}
	total := 0.0
	for _, part := range durationPart.FindAllStringSubmatch(text, -1) {
		number, err := strconv.ParseFloat(part[1], 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration: %w", text, err)
		}
		total += number * float64(units[part[2]])
	}
	if total > float64(math.MaxInt64)/2 {
		return 0, fmt.Errorf("%q is longer than can be kept", text)
	}
	return time.Duration(total), nil
}

var windowText = regexp.MustCompile(`^(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})\s+(\S+)$`)

// parseWindow reads "22:00-07:00 Europe/Berlin".
func parseWindow(text string) (*Window, error) {
	match := windowText.FindStringSubmatch(text)
	if match == nil {
		return nil, fmt.Errorf("%q: want start, end and zone, such as \"22:00-07:00 Europe/Berlin\"", text)
	}
	var numbers [4]int
	for i := range numbers {
		number, err := strconv.Atoi(match[i+1])
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		limit := 23
		if i%2 == 1 {
			limit = 59
		}
		if number > limit {
			return nil, fmt.Errorf("%q: %d is no hour or minute of a day", text, number)
		}
		numbers[i] = number
	}
	if _, err := time.LoadLocation(match[5]); err != nil {
		return nil, fmt.Errorf("%q: time zone %q is not known; write it like Europe/Berlin or UTC", text, match[5])
	}
	window := &Window{Start: Clock{numbers[0], numbers[1]}, End: Clock{numbers[2], numbers[3]}, Zone: match[5]}
	if window.Start == window.End {
		return nil, fmt.Errorf("%q: the window is empty: start and end are the same", text)
	}
	return window, nil
}
