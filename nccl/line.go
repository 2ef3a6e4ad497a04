package nccl

import (
	"regexp"
	"strconv"
	"strings"
)

// Severity is the level of a log line.
type Severity string

// The severities. A bare version line has no severity of its own in the log.
const (
	SeverityVersion Severity = "VERSION"
	SeverityWarn    Severity = "WARN"
	SeverityAttn    Severity = "ATTN"
	SeverityInfo    Severity = "INFO"
	SeverityTrace   Severity = "TRACE"
	SeverityCall    Severity = "CALL"
	SeverityAbort   Severity = "ABORT"
)

// Line is one line of NCCL's log.
type Line struct {
	Prefix   string // what a server printed in front, such as "(Worker_TP0 pid=78022) "
	Time     string // as printed, empty for most severities
	Host     string
	PID, TID int
	// Device is the CUDA device index in that process, -1 when not printed.
	Device   int
	Source   string // "init.cc:904", printed with warnings
	Function string // printed with warnings from 2.30.7 on
	Severity Severity
	Message  string
}

// maxLine is how much of a line is looked at. NCCL cuts its own at about 1,000
// bytes before 2.29.
const maxLine = 16 << 10

// maxHead is how far into a line NCCL's own text may begin.
const maxHead = 512

var (
	// lineHead is what stands before "NCCL INFO ".
	lineHead = regexp.MustCompile(`^(|.*?[^\w-])(?:\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]*)\] )?([^\s:]+):(\d+):(\d+) (?:\[(-?\d+)\] )?` +
		`(?:(\S+\.(?:cc|h|cu):\d+)(?: \(([^)]*)\))? )?$`)
	bareVersion = regexp.MustCompile(`^(|.*\s)(NCCL version \d+\.\d+\.\d+\S*\+cuda\d+\.\d+)\s*$`)
)

var severities = []Severity{SeverityInfo, SeverityWarn, SeverityAttn, SeverityTrace, SeverityCall, SeverityAbort}

// ParseLine reads a line of NCCL's log, with or without a server's prefix:
//
//	host:pid:tid [dev] NCCL INFO text
//	[2026-01-31 02:03:04] host:pid:tid [dev] file.cc:123 (function) NCCL WARN text
//	NCCL version 2.28.9+cuda13.0
//
// The time came with 2.26, the function with 2.30.7. It reports false for
// every other line.
func ParseLine(text string) (Line, bool) {
	start := strings.Index(text, "NCCL ")
	if start < 0 {
		return Line{}, false
	}
	text = strings.TrimRight(text[:min(len(text), maxLine)], "\r\n")
	for start < min(len(text), maxHead) {
		if line, ok := parseAt(text, start); ok {
			return line, true
		}
		next := strings.Index(text[start+1:], "NCCL ")
		if next < 0 {
			break
		}
		start += 1 + next
	}
	if match := bareVersion.FindStringSubmatch(text); match != nil {
		return Line{Prefix: match[1], Device: -1, Severity: SeverityVersion, Message: match[2]}, true
	}
	return Line{}, false
}

// parseAt reads a line whose "NCCL " stands at start.
func parseAt(text string, start int) (Line, bool) {
	rest := text[start+len("NCCL "):]
	for _, severity := range severities {
		message, found := strings.CutPrefix(rest, string(severity)+" ")
		if !found {
			continue
		}
		line, ok := parseHead(text[:start])
		line.Severity, line.Message = severity, message
		return line, ok
	}
	return Line{}, false
}

func parseHead(head string) (Line, bool) {
	match := lineHead.FindStringSubmatch(head)
	if match == nil {
		return Line{}, false
	}
	line := Line{Prefix: match[1], Time: match[2], Host: match[3], Device: -1, Source: match[7], Function: match[8]}
	var err error
	if line.PID, err = strconv.Atoi(match[4]); err != nil {
		return Line{}, false
	}
	if line.TID, err = strconv.Atoi(match[5]); err != nil {
		return Line{}, false
	}
	if match[6] != "" {
		if line.Device, err = strconv.Atoi(match[6]); err != nil {
			return Line{}, false
		}
	}
	return line, true
}
