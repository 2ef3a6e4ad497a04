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

var (
	logLine = regexp.MustCompile(`^(.*?)(?:\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]*)\] )?([^\s:]+):(\d+):(\d+) (?:\[(-?\d+)\] )?` +
		`(?:(\S+\.(?:cc|h|cu):\d+)(?: \(([^)]*)\))? )?NCCL (INFO|WARN|ATTN|TRACE|CALL|ABORT) (.*)$`)
	bareVersion = regexp.MustCompile(`^(|.*\s)(NCCL version \d+\.\d+\.\d+\S*\+cuda\d+\.\d+)\s*$`)
)

// ParseLine reads a line of NCCL's log, with or without a server's prefix:
//
//	host:pid:tid [dev] NCCL INFO text
//	[2026-01-31 02:03:04] host:pid:tid [dev] file.cc:123 (function) NCCL WARN text
//	NCCL version 2.28.9+cuda13.0
//
// The time came with 2.26, the function with 2.30.7. It reports false for
// every other line.
func ParseLine(text string) (Line, bool) {
	if !strings.Contains(text, "NCCL ") {
		return Line{}, false
	}
	text = strings.TrimRight(text[:min(len(text), maxLine)], "\r\n")
	match := logLine.FindStringSubmatch(text)
	if match == nil {
		match = bareVersion.FindStringSubmatch(text)
		if match == nil {
			return Line{}, false
		}
		return Line{Prefix: match[1], Device: -1, Severity: SeverityVersion, Message: match[2]}, true
	}
	line := Line{Prefix: match[1], Time: match[2], Host: match[3], Device: -1, Source: match[7], Function: match[8],
		Severity: Severity(match[9]), Message: match[10]}
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
