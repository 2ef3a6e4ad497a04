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

// duration is a span of time with its unit: d h m s ms, such as 45m, 1h30m or
// 1.5d.
type duration struct {
	time.Duration
	Position
}

var (
	durationText = regexp.MustCompile(`^(\d+(?:\.\d+)?(?:d|h|ms|m|s))+$`)
	durationPart = regexp.MustCompile(`(\d+(?:\.\d+)?)(d|h|ms|m|s)`)
	units        = map[string]time.Duration{"d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second, "ms": time.Millisecond}
)

// longestDuration is far above any budget and far below what the clock can
// count.
const longestDuration = 10 * 365 * 24 * time.Hour

func (t *duration) readNode(d *decoder, node ast.Node) {
	read, ok := d.scalar(node)
	if !ok {
		return
	}
	span, err := parseDuration(read.Text)
	if err != nil {
		d.fault(read.Position, "%v", err)
		return
	}
	t.Duration, t.Position = span, read.Position
}

func (t duration) given() bool { return t.Line > 0 }

func parseDuration(text string) (time.Duration, error) {
	if number, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(number) && !math.IsInf(number, 0) {
		return 0, withoutUnit(text, number)
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
	if total > float64(longestDuration) {
		return 0, fmt.Errorf("%q is longer than ten years; is the unit right?", text)
	}
	return time.Duration(total), nil
}

// withoutUnit says how a bare number might be meant: in seconds, and in minutes
// where that is a round number.
func withoutUnit(text string, number float64) error {
	if number < 0 {
		return fmt.Errorf("%q: a duration cannot be negative", text)
	}
	plain := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	hint := "write " + plain(number) + "s"
	if minutes := number / 60; minutes >= 1 && minutes == math.Trunc(minutes) {
		hint += " or " + plain(minutes) + "m"
	} else {
		hint += " for seconds, or " + plain(number) + "m for minutes"
	}
	return fmt.Errorf("%q has no unit; %s", text, hint)
}

var windowText = regexp.MustCompile(`^(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})\s+(\S+)$`)

// parseWindow reads "22:00-07:00 Europe/Berlin".
func parseWindow(text string) (*Window, error) {
	match := windowText.FindStringSubmatch(text)
	if match == nil {
		return nil, fmt.Errorf("%q: want start, end and zone, such as \"22:00-07:00 Europe/Berlin\"", text)
	}
	start, startErr := parseClock(match[1], match[2])
	end, endErr := parseClock(match[3], match[4])
	for _, err := range []error{startErr, endErr} {
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
	}
	if zone := match[5]; zone == "Local" {
		return nil, fmt.Errorf("%q: Local is another zone on every machine; write it like Europe/Berlin or UTC", text)
	} else if _, err := time.LoadLocation(zone); err != nil {
		return nil, fmt.Errorf("%q: time zone %q is not known; write it like Europe/Berlin or UTC", text, zone)
	}
	if start == end {
		return nil, fmt.Errorf("%q: the window is empty: start and end are the same", text)
	}
	return &Window{Start: start, End: end, Zone: match[5]}, nil
}

func parseClock(hour, minute string) (Clock, error) {
	// The pattern leaves only digits, at most two.
	h, _ := strconv.Atoi(hour)
	m, _ := strconv.Atoi(minute)
	if h > 23 || m > 59 {
		return Clock{}, fmt.Errorf("%s:%s is no time of day; the last one is 23:59", hour, minute)
	}
	return Clock{Hour: h, Minute: m}, nil
}
