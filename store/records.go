package store

import (
	"encoding/json"
	"strconv"
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
	ID    string        `json:"id"` // ULID
	Name  string        `json:"name"`
	Run   int           `json:"run"` // 1, 2, ... for each (Name, Instance)
	State CampaignState `json:"state"`
	// Cause says in words why the campaign is paused, failed or stopped.
	Cause string `json:"cause"`

	// File is the campaign file as written; Spec the resolved form that a run
	// goes on with; SpecDigest covers the parts that must not change.
	File       string          `json:"file"`
	Spec       json.RawMessage `json:"spec"`
	SpecDigest string          `json:"spec_digest"`
	Seed       uint64          `json:"seed"`

	Host        string          `json:"host"`
	HardwareKey string          `json:"hardware_key"`
	Instance    string          `json:"instance"`
	Hardware    json.RawMessage `json:"hardware"` // runners.Hardware
	Model       string          `json:"model"`
	ModelKey    string          `json:"model_key"`
	Workload    json.RawMessage `json:"workload"` // runners.Workload
	WorkloadKey string          `json:"workload_key"`
	Objective   Objective       `json:"objective"`

	Created time.Time  `json:"created"`
	Updated time.Time  `json:"updated"`
	Ended   *time.Time `json:"ended"`
	// Verdict is the claim, once there is one (the JSON of the verdict object).
	Verdict json.RawMessage `json:"verdict"`
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

// String names what is optimized: "maximize output_throughput at 8". Results
// compare only within one such name.
func (o Objective) String() string {
	text := o.Direction + " " + o.Metric
	if o.Aggregate != "" {
		text += " by " + o.Aggregate
	}
	if o.At != nil {
		text += " at " + strconv.Itoa(*o.At)
	}
	return text
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
	ID            string        `json:"id"`
	CampaignID    string        `json:"campaign_id"`
	Number        int           `json:"number"` // from 1, without gaps, in the campaign
	State         TrialState    `json:"state"`
	Role          Role          `json:"role"`
	Configuration Configuration `json:"configuration"`
	// RepeatOf is the number of the trial of the same configuration that this
	// one deliberately repeats; 0 for none.
	RepeatOf int `json:"repeat_of"`
	// Reason says in words why the trial was proposed, and Expected what the model
	// of the sampler expected of it; nil where no model proposed it.
	Reason   string    `json:"reason"`
	Expected *Expected `json:"expected"`
	// Attempt is the number of the latest attempt, 0 before the first.
	Attempt int `json:"attempt"`

	Host        string          `json:"host"`
	HardwareKey string          `json:"hardware_key"`
	StackKey    string          `json:"stack_key"`
	Stack       json.RawMessage `json:"stack"` // runners.Stack

	// Value is the objective; nil unless the trial is complete, or pruned: then it
	// is the best that the trial could have come to. It is finite.
	Value *float64 `json:"value"`
	// StandardError of Value over rounds, in the objective's unit; nil if unknown.
	StandardError *float64 `json:"standard_error"`
	// BrokenLimits names the metrics whose limit in the objective the trial does
	// not keep. A trial with any is never the best.
	BrokenLimits []string              `json:"broken_limits"`
	Points       []runners.PointResult `json:"points"`
	Failure      *runners.Failure      `json:"failure"`
	Proof        []runners.Proof       `json:"proof"`
	Effective    map[string]string     `json:"effective"`
	LogPath      string                `json:"log_path"`

	Created time.Time  `json:"created"`
	Started *time.Time `json:"started"`
	Ended   *time.Time `json:"ended"`
	// Seconds by the monotonic clock; nil before the trial has ended.
	LoadingS   *float64 `json:"loading_s"`
	MeasuringS *float64 `json:"measuring_s"`
	OverheadS  *float64 `json:"overhead_s"`
}

// Expected is what a sampler's model expected of a trial when it proposed it.
type Expected struct {
	// Ratio of the objective to that of the best trial so far, above 1 better;
	// Interval holds 95 % of its probability.
	Ratio    float64    `json:"ratio"`
	Interval [2]float64 `json:"interval"`
	// Improvement is the expected improvement over the best trial so far, as a
	// share of it, with failures counting as none.
	Improvement float64 `json:"improvement"`
	// Crash is the probability that the configuration fails.
	Crash float64 `json:"crash"`
}

// Attempt is one try at a trial. Attempts are fenced: only the latest one of a
// running trial may be finished.
type Attempt struct {
	TrialID    string `json:"trial_id"`
	CampaignID string `json:"campaign_id"`
	Number     int    `json:"number"`
	// State is running, complete (a result was stored), failed (retried) or lost.
	State  AttemptState    `json:"state"`
	Host   string          `json:"host"`
	Launch *runners.Launch `json:"launch"` // nil until the supervisor exists
	// Stage is the last stage that was reported.
	Stage   runners.Stage    `json:"stage"`
	Failure *runners.Failure `json:"failure"`
	Started time.Time        `json:"started"`
	Ended   *time.Time       `json:"ended"`
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
	CampaignID    string          `json:"campaign_id"`
	Campaign      string          `json:"campaign"`
	Run           int             `json:"run"`
	HardwareKey   string          `json:"hardware_key"`
	Instance      string          `json:"instance"`
	Hardware      json.RawMessage `json:"hardware"`
	StackKey      string          `json:"stack_key"`
	Stack         json.RawMessage `json:"stack"`
	Driver        string          `json:"driver"`
	Model         string          `json:"model"`
	ModelKey      string          `json:"model_key"`
	Workload      json.RawMessage `json:"workload"`
	WorkloadKey   string          `json:"workload_key"`
	Objective     Objective       `json:"objective"`
	Configuration Configuration   `json:"configuration"`
	// Value is the mean over fresh launches, Interval its confidence interval
	// (nil when there are too few launches), Speedup that over the reference.
	Value     float64     `json:"value"`
	Interval  *[2]float64 `json:"interval"`
	Speedup   *float64    `json:"speedup"`
	Launches  int         `json:"launches"`
	Confirmed bool        `json:"confirmed"`
	Claim     string      `json:"claim"`
	Time      time.Time   `json:"time"`
}

// Event is one thing that happened in a campaign, as `tune --json` prints it.
type Event struct {
	CampaignID string          `json:"campaign_id"`
	Seq        int64           `json:"seq"` // from 1, without gaps, in the campaign
	Name       string          `json:"name"`
	Time       time.Time       `json:"time"`
	Payload    json.RawMessage `json:"payload"` // the event's own fields
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
