package spec

import (
	"encoding/json"
	"time"

	"nocturne/nccl"
	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
)

// Campaign is a campaign file that has been read, checked and resolved:
// defaults filled in, presets merged, values typed, variables substituted.
type Campaign struct {
	Name  string
	Model string
	// File is the text as written, Directory the folder that its relative paths
	// start from.
	File      string
	Directory string

	Kind      string // server kind, or "command"
	GPUs      runners.GPUSelection
	Host      string // "local" when the file says nothing
	Workload  runners.Workload
	Objective store.Objective
	Timeouts  runners.Timeouts
	Command   runners.CommandOutput
	// ServingScale is 1 for real servers.
	ServingScale float64

	Space *search.Space
	// Baseline has every knob at its default.
	Baseline search.Values
	// Current is what production runs, nil when the file does not say.
	Current search.Values
	// Hints are the configurations of `try`, measured first.
	Hints []search.Values

	Sampler string
	// StopSettled ends the search when nothing is left to gain beyond the noise.
	StopSettled bool
	// History admits what earlier campaigns of the machine have shown, Recipes
	// what is published for such machines.
	History, Recipes bool

	Seed    uint64
	Budget  Budget
	Confirm Confirm
	// MinimalEffect is the relative gain below which a difference does not
	// matter: an interval within it of 1 is "no_effect".
	MinimalEffect float64
	Expect        Expect

	launch launchTemplate
	facts  nccl.Context
}

// Budget says how much a campaign may use.
type Budget struct {
	Trials int           `json:"trials"` // search trials
	Time   time.Duration `json:"time,omitempty"`
	Window *Window       `json:"window,omitempty"`
	Nights int           `json:"nights,omitempty"`
	Until  *time.Time    `json:"until,omitempty"`
}

// Window is a daily span of time in a zone, such as 22:00-07:00 Europe/Berlin.
type Window struct {
	Start Clock  `json:"start"`
	End   Clock  `json:"end"`
	Zone  string `json:"zone"`
}

// Clock is a time of day.
type Clock struct {
	Hour   int `json:"hour"`
	Minute int `json:"minute"`
}

// Confirm says how the end of the campaign is measured.
type Confirm struct {
	// Auto lets the plan choose: up to two finalists, three launches each, within
	// a fifth of the launches.
	Auto       bool `json:"auto"`
	Top        int  `json:"top,omitempty"`
	Relaunches int  `json:"relaunches,omitempty"`
}

// Expect is what the person expects of the baseline.
type Expect struct {
	// Metric and Value of the objective expected; Metric is empty when the file
	// says nothing.
	Metric      string  `json:"metric,omitempty"`
	Value       float64 `json:"value,omitempty"`
	OnShortfall string  `json:"on_shortfall,omitempty"` // continue | pause
}

// Resolved is the stored form of a campaign: everything that was decided when
// the file was read. Fixed must be equal when a run goes on; Free may change.
type Resolved struct {
	Fixed json.RawMessage `json:"fixed"`
	Free  json.RawMessage `json:"free"`
}
