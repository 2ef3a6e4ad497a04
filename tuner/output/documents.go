package output

import (
	"time"

	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
)

// Trial is a trial object.
type Trial struct {
	Trial         int                   `json:"trial"`
	ID            string                `json:"id"`
	Attempt       int                   `json:"attempt"`
	State         store.TrialState      `json:"state"`
	Role          store.Role            `json:"role"`
	Configuration store.Configuration   `json:"configuration"`
	RepeatOf      *int                  `json:"repeat_of"`
	Host          string                `json:"host"`
	HardwareKey   string                `json:"hardware_key"`
	StackKey      string                `json:"stack_key"`
	Value         *float64              `json:"value"`
	StandardError *float64              `json:"standard_error"`
	Points        []runners.PointResult `json:"points"`
	Failure       *runners.Failure      `json:"failure"`
	Proof         []runners.Proof       `json:"proof"`
	Effective     map[string]string     `json:"effective"`
	Reason        string                `json:"reason"`
	// Expected is what the model of the search expected of the trial; null where
	// no model proposed it.
	Expected   *store.Expected `json:"expected"`
	LogPath    string          `json:"log_path"`
	Started    *time.Time      `json:"started"`
	Ended      *time.Time      `json:"ended"`
	LoadingS   *float64        `json:"loading_s"`
	MeasuringS *float64        `json:"measuring_s"`
	OverheadS  *float64        `json:"overhead_s"`
}

// Trials is the answer of `trials`.
type Trials struct {
	Schema     int     `json:"schema"`
	CampaignID string  `json:"campaign_id"`
	Campaign   string  `json:"campaign"`
	Run        int     `json:"run"`
	Trials     []Trial `json:"trials"`
}

// Verdict is the claim at the end of a campaign.
type Verdict struct {
	Claim  string `json:"claim"` // improved | tie | no_effect | unconfirmed | none
	Reason string `json:"reason"`
	// Against is "current" when the file gives it, else "baseline"; null when
	// there was no valid reference.
	Against           *string      `json:"against"`
	Speedup           *float64     `json:"speedup"` // above 1 is better
	Interval          *[2]float64  `json:"interval"`
	Confidence        float64      `json:"confidence"`
	Comparisons       []Comparison `json:"comparisons"`
	MinimalDetectable *float64     `json:"minimal_detectable"` // relative effect, 0.02 for 2 %
	LaunchNoise       *float64     `json:"launch_noise"`       // relative standard deviation between launches
	// NeededKnobs are the knobs of the winner that were shown to matter; null
	// when that was not measured.
	NeededKnobs []string `json:"needed_knobs"`
	// Candidate is the finalist that the claim is about; null without one.
	Candidate *store.Configuration `json:"candidate"`
	// TiedWith are hashes of finalists that the launches cannot tell apart from
	// the winner.
	TiedWith []string `json:"tied_with"`
}

// Comparison is the winner against one reference.
type Comparison struct {
	Against  string      `json:"against"`
	Speedup  float64     `json:"speedup"`
	Interval *[2]float64 `json:"interval"`
	Launches int         `json:"launches"`
}

// Measured is a configuration with its value over launches.
type Measured struct {
	Configuration store.Configuration `json:"configuration"`
	Value         *float64            `json:"value"`
	Interval      *[2]float64         `json:"interval"`
	Launches      int                 `json:"launches"`
}

// Objective is what a campaign optimizes.
type Objective struct {
	Metric    string  `json:"metric"`
	Direction string  `json:"direction"`
	At        *int    `json:"at"`
	Aggregate *string `json:"aggregate"`
}

// LimitState is a limit with what was measured.
type LimitState struct {
	Metric   string   `json:"metric"`
	Max      *float64 `json:"max"`
	Min      *float64 `json:"min"`
	Baseline *float64 `json:"baseline"`
	Best     *float64 `json:"best"`
	Met      *bool    `json:"met"`
}

// Importance is how much of the effect of all knobs is one knob's, by the model of
// the search, over the values that were measured.
type Importance struct {
	Knob     string      `json:"knob"`
	Share    float64     `json:"share"`    // 0 to 1
	Interval *[2]float64 `json:"interval"` // 95 % of the probability of share
	// Curve has the measured values in their order.
	Curve []Effect `json:"curve"`
}

// Effect is what one value of a knob does to the objective, averaged over the
// other settings of the best configurations.
type Effect struct {
	Value search.Value `json:"value"`
	// Effect is the ratio to the mean over the knob's measured values, above 1
	// better.
	Effect   float64    `json:"effect"`
	Interval [2]float64 `json:"interval"`
}

// Interaction is how far two knobs do together what is not the sum of what each
// does alone, by the model of the search.
type Interaction struct {
	Knobs [2]string `json:"knobs"`
	// Spread is the standard deviation of that part of the objective over the
	// measured values, as a share of it: 0.03 is 3 %.
	Spread   float64    `json:"spread"`
	Interval [2]float64 `json:"interval"` // 95 % of the probability of spread
}

// Tied is a configuration that the trials cannot tell from the best one.
type Tied struct {
	Configuration store.Configuration `json:"configuration"`
	// Ratio to the best as the model of the search sees it: 1 for the best itself,
	// below 1 for others.
	Ratio    float64    `json:"ratio"`
	Interval [2]float64 `json:"interval"` // 95 % of the probability of ratio
	Launches int        `json:"launches"`
	// Changes is how many knobs are not as in the baseline, and Simplest marks the
	// one of all with the fewest.
	Changes  int  `json:"changes"`
	Simplest bool `json:"simplest"`
}

// Time is where the hours of a campaign went.
type Time struct {
	TotalS     float64 `json:"total_s"`
	LoadingS   float64 `json:"loading_s"`
	MeasuringS float64 `json:"measuring_s"`
	OverheadS  float64 `json:"overhead_s"`
}

// Show is the answer of `show`.
type Show struct {
	Schema     int                 `json:"schema"`
	CampaignID string              `json:"campaign_id"`
	Campaign   string              `json:"campaign"`
	Run        int                 `json:"run"`
	State      store.CampaignState `json:"state"`
	Cause      *string             `json:"cause"`
	Model      string              `json:"model"`
	Objective  Objective           `json:"objective"`
	Baseline   *Measured           `json:"baseline"`
	Current    *Measured           `json:"current"`
	Best       *Measured           `json:"best"`
	// Confirmed says that fresh launches stand behind Best.
	Confirmed bool         `json:"confirmed"`
	Verdict   *Verdict     `json:"verdict"`
	Limits    []LimitState `json:"limits"`
	// Trials has "total" and a count for each state.
	Trials map[string]int `json:"trials"`
	// Running is the trial that is being carried out; null when none is on record.
	Running  *RunningTrial  `json:"running"`
	Failures map[string]int `json:"failures"`
	// FailureDetails tells each kind of failure once, the most frequent first.
	FailureDetails []FailureDetail `json:"failure_details"`
	Importance     []Importance    `json:"importance"`
	// Interactions are the strongest ones of two knobs, at most ten.
	Interactions []Interaction `json:"interactions"`
	// Tied are the best configuration and those that cannot be told from it, the
	// best first; empty while too little was measured.
	Tied     []Tied            `json:"tied"`
	Hardware *runners.Hardware `json:"hardware"`
	Stacks   []runners.Stack   `json:"stacks"`
	Time     Time              `json:"time"`
	Created  time.Time         `json:"created"`
	Ended    *time.Time        `json:"ended"`
}

// RunningTrial is where a trial is that has not ended.
type RunningTrial struct {
	Trial   int           `json:"trial"`
	ID      string        `json:"id"`
	Role    store.Role    `json:"role"`
	Attempt int           `json:"attempt"`
	Stage   runners.Stage `json:"stage"`
	Started time.Time     `json:"started"` // of the attempt
}

// FailureDetail is one kind of failure: its class and reason, the trials that
// ended with it, and what the first of them had to say.
type FailureDetail struct {
	Class   runners.Class `json:"class"`
	Reason  string        `json:"reason"`
	Trials  []int         `json:"trials"`
	Message string        `json:"message"`
	LogPath string        `json:"log_path"`
}

// Campaigns is the answer of `campaigns`.
type Campaigns struct {
	Schema    int               `json:"schema"`
	Campaigns []CampaignSummary `json:"campaigns"`
}

// CampaignSummary is one campaign in a list.
type CampaignSummary struct {
	CampaignID string              `json:"campaign_id"`
	Campaign   string              `json:"campaign"`
	Run        int                 `json:"run"`
	State      store.CampaignState `json:"state"`
	Model      string              `json:"model"`
	Hardware   string              `json:"hardware"`
	Host       string              `json:"host"`
	Claim      *string             `json:"claim"`
	Speedup    *float64            `json:"speedup"`
	Created    time.Time           `json:"created"`
	Ended      *time.Time          `json:"ended"`
}

// Best is the answer of `best`.
type Best struct {
	Schema int         `json:"schema"`
	Best   []BestKnown `json:"best"`
}

// BestKnown is a best-known configuration.
type BestKnown struct {
	Hardware      runners.Hardware    `json:"hardware"`
	Stack         runners.Stack       `json:"stack"`
	Model         string              `json:"model"`
	Workload      Workload            `json:"workload"`
	Objective     Objective           `json:"objective"`
	Configuration store.Configuration `json:"configuration"`
	Value         float64             `json:"value"`
	Interval      *[2]float64         `json:"interval"`
	Speedup       *float64            `json:"speedup"`
	Launches      int                 `json:"launches"`
	Confirmed     bool                `json:"confirmed"`
	Claim         string              `json:"claim"`
	Campaign      string              `json:"campaign"`
	CampaignID    string              `json:"campaign_id"`
	Run           int                 `json:"run"`
	Time          time.Time           `json:"time"`
}

// Workload is the workload with its key.
type Workload struct {
	Key string `json:"key"`
	runners.Workload
}

// Compare is the answer of `compare`.
type Compare struct {
	Schema int  `json:"schema"`
	A      Side `json:"a"`
	B      Side `json:"b"`
	// Differences come first for a reader: every stack and host field that
	// differs.
	Differences []Difference `json:"differences"`
	// Attribution says what the ratios may be blamed on: driver, stack or none.
	Attribution string   `json:"attribution"`
	Reasons     []string `json:"reasons"`
	Pairs       []Pair   `json:"pairs"`
	// Ranking is the rank correlation of the paired configurations, null with
	// fewer than three pairs.
	Ranking *float64  `json:"ranking"`
	BestA   *Measured `json:"best_a"`
	BestB   *Measured `json:"best_b"`
}

// Side is one side of a comparison.
type Side struct {
	Campaign   string           `json:"campaign"`
	CampaignID string           `json:"campaign_id"`
	Run        int              `json:"run"`
	Hardware   runners.Hardware `json:"hardware"`
	Stack      runners.Stack    `json:"stack"`
	Objective  Objective        `json:"objective"`
}

// Difference is one field in which the sides differ.
type Difference struct {
	Field string `json:"field"`
	A     string `json:"a"`
	B     string `json:"b"`
}

// Pair is one configuration measured on both sides.
type Pair struct {
	Configuration store.Configuration `json:"configuration"`
	A             Measured            `json:"a"`
	B             Measured            `json:"b"`
	Ratio         float64             `json:"ratio"` // b over a, turned so that above 1 is better
	Interval      *[2]float64         `json:"interval"`
	Verdict       string              `json:"verdict"` // faster | slower | equivalent | inconclusive
}

// Moved is the answer of `import` and `db copy`.
type Moved struct {
	Schema int `json:"schema"`
	// Added counts campaigns that are new there, Known those that were there
	// already and were left as they are.
	Added int `json:"added"`
	Known int `json:"known"`
}

// Count counts one campaign.
func (m *Moved) Count(added bool) {
	if added {
		m.Added++
	} else {
		m.Known++
	}
}

// StoreStatus is the answer of `db status` and `db migrate`.
type StoreStatus struct {
	Schema int `json:"schema"`
	store.Status
}
