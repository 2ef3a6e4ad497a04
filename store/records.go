package store

import (
	"encoding/json"
	"time"

	"nocturne/runners"
	"nocturne/search"
)

// CampaignState is where a campaign is.
type CampaignState string

// Campaign states.
const (
	CampaignWaiting     CampaignState = "waiting"     // for its window
	CampaignRunning     CampaignState = "running"     //
	CampaignRestoring   CampaignState = "restoring"   // bringing the daytime server back
	CampaignPaused      CampaignState = "paused"      // an environment failure, or asked for
	CampaignInterrupted CampaignState = "interrupted" // the tuner was stopped or died; resumable
	CampaignStopped     CampaignState = "stopped"     // ended on request before its budget
	CampaignComplete    CampaignState = "complete"    // concluded
	CampaignFailed      CampaignState = "failed"      // cannot go on
)

// Ended reports whether nothing more will happen to a campaign in this state.
func (s CampaignState) Ended() bool {
	return s == CampaignStopped || s == CampaignComplete || s == CampaignFailed
}

// TrialState is what became of a trial.
type TrialState string

// Trial states.
const (
	TrialPending  TrialState = "pending"
	TrialRunning  TrialState = "running"
	TrialComplete TrialState = "complete"
	TrialPruned   TrialState = "pruned"
	TrialFailed   TrialState = "failed"
	TrialInvalid  TrialState = "invalid"
	TrialVoid     TrialState = "void"
	TrialLost     TrialState = "lost" // its process or host vanished, and it will not be tried again
)

// Ended reports whether the trial is over.
func (s TrialState) Ended() bool { return s != TrialPending && s != TrialRunning }

// Role says why a trial is in the campaign.
type Role string

// Roles of a trial.
const (
	RoleBaseline  Role = "baseline"
	RoleCurrent   Role = "current"
	RoleIncumbent Role = "incumbent"
	RoleHint      Role = "hint"
	RoleSearch    Role = "search"
	RoleControl   Role = "control"
	RoleConfirm   Role = "confirm"
	RoleProbe     Role = "probe"
	RoleManual    Role = "manual"
)

// Campaign is one tuning effort.
type Campaign struct {
	ID    string // ULID
	Name  string
	Run   int // 1, 2, ... for each (Name, Instance)
	State CampaignState
	// Cause says in words why the campaign is paused, failed or stopped.
	Cause string

	// File is the campaign file as written; Spec the resolved form that a run
	// goes on with; SpecDigest covers the parts that must not change.
	File       string
	Spec       json.RawMessage
	SpecDigest string
	Seed       uint64

	Host        string
	HardwareKey string
	Instance    string
	Hardware    json.RawMessage // runners.Hardware
	Model       string
	ModelKey    string
	Workload    json.RawMessage // runners.Workload
	WorkloadKey string
	Objective   Objective

	Created time.Time
	Updated time.Time
	Ended   *time.Time
	// Verdict is the claim, once there is one (the JSON of the verdict object).
	Verdict json.RawMessage
}

// Objective is what a campaign optimizes.
type Objective struct {
	Metric    string `json:"metric"`
	Direction string `json:"direction"` // maximize | minimize
	// At is the concurrency whose metric counts; null with a single load point
	// or an aggregate.
	At        *int             `json:"at"`
	Aggregate string           `json:"aggregate,omitempty"`
	Limits    map[string]Limit `json:"limits,omitempty"`
}

// Limit is a bound on a metric.
type Limit struct {
	Max *float64 `json:"max,omitempty"`
	Min *float64 `json:"min,omitempty"`
}

// Minimize reports whether smaller is better.
func (o Objective) Minimize() bool { return o.Direction == "minimize" }

// Configuration is a value for every active knob and what that does to the
// launch.
type Configuration struct {
	// Hash is the identity of the whole launch asked for: "c1:" and a digest.
	Hash string `json:"hash"`
	// EquivalentTo is the hash of the canonical form under the NCCL at hand, or
	// null when it is its own canonical form.
	EquivalentTo *string           `json:"equivalent_to"`
	Values       search.Values     `json:"values"`
	Env          map[string]string `json:"env"`
	Unset        []string          `json:"unset"`
	Args         []string          `json:"args"`
}

// Trial is one configuration, launched once and measured.
type Trial struct {
	ID            string
	CampaignID    string
	Number        int // from 1, without gaps, in the campaign
	State         TrialState
	Role          Role
	Configuration Configuration
	// RepeatOf is the number of the trial of the same configuration that this
	// one deliberately repeats; 0 for none.
	RepeatOf int
	// Reason says in words why the trial was proposed.
	Reason string
	// Attempt is the number of the latest attempt, 0 before the first.
	Attempt int

	Host        string
	HardwareKey string
	StackKey    string
	Stack       json.RawMessage // runners.Stack

	// Value is the objective; nil unless the trial is complete or pruned.
	// It is finite.
	Value *float64
	// StandardError of Value over rounds, in the objective's unit; nil if unknown.
	StandardError *float64
	Points        []runners.PointResult
	Failure       *runners.Failure
	Proof         []runners.Proof
	Effective     map[string]string
	LogPath       string

	Created time.Time
	Started *time.Time
	Ended   *time.Time
	// Seconds by the monotonic clock; nil before the trial has ended.
	LoadingS, MeasuringS, OverheadS *float64
}

// Attempt is one try at a trial. Attempts are fenced: only the latest one of a
// running trial may be finished.
type Attempt struct {
	TrialID    string
	CampaignID string
	Number     int
	// State is running, complete (a result was stored), failed (retried) or lost.
	State  AttemptState
	Host   string
	Launch *runners.Launch // nil until the supervisor exists
	// Stage is the last stage that was reported.
	Stage   runners.Stage
	Failure *runners.Failure
	Started time.Time
	Ended   *time.Time
}

// AttemptState is what became of an attempt.
type AttemptState string

// Attempt states.
const (
	AttemptRunning  AttemptState = "running"
	AttemptComplete AttemptState = "complete"
	AttemptFailed   AttemptState = "failed"
	AttemptLost     AttemptState = "lost"
)

// Conclusion is a best-known configuration as a campaign left it: what `best`
// answers from. A campaign has at most one.
type Conclusion struct {
	CampaignID    string
	Campaign      string
	Run           int
	HardwareKey   string
	Instance      string
	Hardware      json.RawMessage
	StackKey      string
	Stack         json.RawMessage
	Driver        string
	Model         string
	ModelKey      string
	Workload      json.RawMessage
	WorkloadKey   string
	Objective     Objective
	Configuration Configuration
	// Value is the mean over fresh launches, Interval its confidence interval
	// (nil when there are too few launches), Speedup that over the reference.
	Value     float64
	Interval  *[2]float64
	Speedup   *float64
	Launches  int
	Confirmed bool
	Claim     string
	Time      time.Time
}

// Event is one thing that happened in a campaign, as `tune --json` prints it.
type Event struct {
	CampaignID string
	Seq        int64 // from 1, without gaps, in the campaign
	Name       string
	Time       time.Time
	Payload    json.RawMessage // the event's own fields
}

// Lease is the right to change a campaign.
type Lease struct {
	CampaignID string
	Owner      string // who holds it, for people: host, pid, start time
	// Token grows with each acquisition; a change made with an older token is
	// refused.
	Token   int64
	Expires time.Time // by the clock of the database
}
