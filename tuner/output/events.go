package output

import (
	"encoding/json"
	"fmt"
	"time"

	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/plan"
)

// Names of events, in the order in which a campaign first emits them.
const (
	EventCampaignStarted  = "campaign_started"
	EventPlan             = "plan"
	EventPhase            = "phase"
	EventTrialStarted     = "trial_started"
	EventStage            = "stage"
	EventRound            = "round"
	EventTrialFinished    = "trial_finished"
	EventWarning          = "warning"
	EventVerdict          = "verdict"
	EventCampaignFinished = "campaign_finished"
)

// Header is what every event line starts with.
type Header struct {
	Schema     int       `json:"schema"`
	Seq        int64     `json:"seq"`
	Event      string    `json:"event"`
	Time       time.Time `json:"time"`
	CampaignID string    `json:"campaign_id"`
	Campaign   string    `json:"campaign"`
	Run        int       `json:"run"`
}

// CampaignStarted opens a campaign, or goes on with one.
type CampaignStarted struct {
	// Resumed is true when an unfinished run goes on.
	Resumed   bool             `json:"resumed"`
	Store     string           `json:"store"`
	Host      string           `json:"host"`
	Hardware  runners.Hardware `json:"hardware"`
	Objective Objective        `json:"objective"`
	Knobs     int              `json:"knobs"`
	// Configurations is the number of distinct ones, or an estimate.
	Configurations float64 `json:"configurations"`
	Exact          bool    `json:"exact"`
	Seed           uint64  `json:"seed"`
	// Baseline is the value of every active knob in the baseline.
	Baseline search.Values `json:"baseline"`
	// TrialsDone counts trials that had ended before.
	TrialsDone int `json:"trials_done"`
}

// PlanMade tells what fits.
type PlanMade struct {
	Plan plan.Plan `json:"plan"`
}

// PhaseEntered says which part of the campaign begins.
type PhaseEntered struct {
	Phase    string     `json:"phase"` // waiting | baseline | current | search | confirm | conclude
	Launches int        `json:"launches"`
	Reason   string     `json:"reason,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
}

// TrialStarted says that a trial is about to launch.
type TrialStarted struct {
	Trial         int                 `json:"trial"`
	ID            string              `json:"id"`
	Attempt       int                 `json:"attempt"`
	Role          store.Role          `json:"role"`
	Configuration store.Configuration `json:"configuration"`
	Reason        string              `json:"reason"`
	// Of is the number of trials planned in all.
	Of int `json:"of"`
}

// StageEntered says where a running trial is.
type StageEntered struct {
	Trial int           `json:"trial"`
	Stage runners.Stage `json:"stage"`
	// Phase and Percent are progress within loading.
	Phase   string   `json:"phase,omitempty"`
	Percent *float64 `json:"percent,omitempty"`
	// UsualS is how long this stage took in earlier trials (median); null when
	// there was none.
	UsualS *float64 `json:"usual_s"`
	// RemainingS is how long the load will still take from here, by earlier loads of
	// the model on this hardware; null when none tells, and outside of loading.
	RemainingS *float64 `json:"remaining_s"`
}

// RoundMeasured is one round's result.
type RoundMeasured struct {
	Trial       int `json:"trial"`
	Round       int `json:"round"`
	Concurrency int `json:"concurrency"`
	// RequestRate is that of an open loop, requests/s; null in a closed one.
	RequestRate *float64        `json:"request_rate"`
	Metrics     runners.Metrics `json:"metrics"`
}

// TrialFinished carries the trial object.
type TrialFinished struct {
	Trial Trial `json:"trial"`
	// Retried is true when the trial is queued again after a failed attempt.
	Retried bool `json:"retried"`
	// Ratio to the baseline, above 1 is better; null without both values.
	Ratio *float64 `json:"ratio"`
	// Best so far, of all trials that may win, and its ratio.
	BestTrial *int     `json:"best_trial"`
	BestValue *float64 `json:"best_value"`
	BestRatio *float64 `json:"best_ratio"`
}

// Warning is something that a person should know.
type Warning struct {
	Message string `json:"message"`
}

// VerdictReached carries the verdict object and the winner.
type VerdictReached struct {
	Verdict Verdict   `json:"verdict"`
	Best    *Measured `json:"best"`
}

// CampaignFinished is the last event of a run of the tuner.
type CampaignFinished struct {
	State      store.CampaignState `json:"state"`
	ExitStatus int                 `json:"exit_status"`
	// Restored says whether the daytime server is back; null when the campaign
	// had none to restore.
	Restored *bool  `json:"restored"`
	Cause    string `json:"cause,omitempty"`
}

// Line is an event as one line of JSON: the header's fields, then the
// payload's.
func Line(campaign string, run int, event store.Event) ([]byte, error) {
	header, err := json.Marshal(Header{Schema: Schema, Seq: event.Seq, Event: event.Name, Time: event.Time.UTC(),
		CampaignID: event.CampaignID, Campaign: campaign, Run: run})
	if err != nil {
		return nil, fmt.Errorf("event %d: %w", event.Seq, err)
	}
	if len(event.Payload) <= 2 { // {}
		return header, nil
	}
	line := append(header[:len(header)-1], ',')
	return append(line, event.Payload[1:]...), nil
}
