package supervise

import (
	"syscall"
	"time"
)

// File descriptors of a supervisor beyond stdin, stdout and stderr.
const (
	controlFD = 3 + iota // orders of the tuner; its end is the tuner's end
	reportFD             // reports to the tuner
	linesFD              // lines of output to the tuner
)

// order is what the tuner tells the supervisor.
type order struct {
	Do orderKind
	// Spec and Marker come with prepare.
	Spec   *Spec  `json:",omitempty"`
	Marker string `json:",omitempty"`
	// Timeout comes with stop: the time from terminate to kill.
	Timeout time.Duration `json:",omitempty"`
}

type orderKind string

const (
	orderPrepare orderKind = "prepare"
	orderStart   orderKind = "start"
	orderStop    orderKind = "stop"
)

// report is what the supervisor tells the tuner.
type report struct {
	Event reportKind
	// Cgroup comes with ready; empty where none could be made.
	Cgroup string `json:",omitempty"`
	// PID comes with started.
	PID int `json:",omitempty"`
	// Code, Signal and Core come with exited.
	Code   int            `json:",omitempty"`
	Signal syscall.Signal `json:",omitempty"`
	Core   bool           `json:",omitempty"`
	// Message and Errno come with failed and warning.
	Message string        `json:",omitempty"`
	Errno   syscall.Errno `json:",omitempty"`
}

type reportKind string

const (
	reportReady   reportKind = "ready"   // prepared; waits for start
	reportStarted reportKind = "started" // the server runs
	reportFailed  reportKind = "failed"  // the server could not be started
	reportExited  reportKind = "exited"  // the server's own process ended
	reportWarning reportKind = "warning" // something worth telling that does not stop the launch
	reportGone    reportKind = "gone"    // no process of the launch is left
)
