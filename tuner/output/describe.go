package output

import (
	"context"

	"nocturne/nccl"
	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/knowledge"
	"nocturne/tuner/plan"
	"nocturne/tuner/spec"
)

// Validate is the answer of `validate`.
type Validate struct {
	Schema         int                 `json:"schema"`
	Campaign       string              `json:"campaign"`
	Objective      Objective           `json:"objective"`
	Sampler        string              `json:"sampler"`
	Knobs          []Knob              `json:"knobs"`
	Configurations float64             `json:"configurations"`
	Exact          bool                `json:"exact"`
	Baseline       store.Configuration `json:"baseline"`
	TimeoutsS      map[string]float64  `json:"timeouts_s"`
	Plan           plan.Plan           `json:"plan"`
	// Starts are early trials that the file does not name.
	Starts []Start `json:"starts"`
}

// Start is an early trial: the best known of the machine, or a recipe.
type Start struct {
	Role   store.Role    `json:"role"`
	Values search.Values `json:"values"`
	Reason string        `json:"reason"`
}

// Knob is one knob of a space.
type Knob struct {
	Knob    string          `json:"knob"`
	Kind    search.KnobKind `json:"kind"`
	Values  []search.Value  `json:"values"`
	Default search.Value    `json:"default"`
	When    string          `json:"when"` // empty: always
}

// ValidateOf answers `validate`.
func ValidateOf(ctx context.Context, campaign *spec.Campaign, made plan.Plan, starts []knowledge.Start) (Validate, error) {
	baseline, err := campaign.Configuration(campaign.Baseline, campaign.Facts())
	if err != nil {
		return Validate{}, err
	}
	answer := Validate{
		Schema: Schema, Campaign: campaign.Name, Objective: ObjectiveOf(campaign.Objective), Sampler: campaign.Sampler,
		Knobs: []Knob{}, Baseline: ConfigurationOf(baseline), Plan: made, Starts: []Start{},
		TimeoutsS: map[string]float64{
			"launching": campaign.Timeouts.Launching.Seconds(), "loading": campaign.Timeouts.Loading.Seconds(),
			"stalled": campaign.Timeouts.Stalled.Seconds(), "verifying": campaign.Timeouts.Verifying.Seconds(),
			"warming": campaign.Timeouts.Warming.Seconds(), "round": campaign.Timeouts.Round.Seconds(), "stopping": campaign.Timeouts.Stopping.Seconds(),
		},
	}
	answer.Configurations, answer.Exact = campaign.Space.Count(ctx)
	for _, knob := range campaign.Space.Knobs() {
		object := Knob{Knob: knob.ID, Kind: knob.Kind, Values: knob.Levels, Default: knob.Default}
		if knob.When.Knob != "" {
			object.When = knob.When.String()
		}
		answer.Knobs = append(answer.Knobs, object)
	}
	for _, start := range starts {
		answer.Starts = append(answer.Starts, Start(start))
	}
	return answer, nil
}

// Render is the answer of `render`.
type Render struct {
	Schema        int                 `json:"schema"`
	Configuration store.Configuration `json:"configuration"`
	// Args and Env are the whole launch; placeholders that the host fills at
	// launch stand as ${name}.
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Secrets []string          `json:"secrets"`
	Removed []string          `json:"removed"`
}

// RenderOf answers `render`.
func RenderOf(campaign *spec.Campaign, values search.Values, facts nccl.Context) (Render, error) {
	configuration, err := campaign.Configuration(values, facts)
	if err != nil {
		return Render{}, err
	}
	job, err := campaign.Job(values, facts)
	if err != nil {
		return Render{}, err
	}
	answer := Render{Schema: Schema, Configuration: ConfigurationOf(configuration), Args: job.Args, Env: job.Env, Secrets: []string{}, Removed: ConfigurationOf(configuration).Unset}
	for _, secret := range job.Secrets {
		answer.Secrets = append(answer.Secrets, secret.Name)
	}
	return answer, nil
}

// Fingerprint is the answer of `fingerprint`.
type Fingerprint struct {
	Schema int `json:"schema"`
	runners.Fingerprint
}

// FingerprintOf answers `fingerprint`.
func FingerprintOf(found runners.Fingerprint) Fingerprint {
	return Fingerprint{Schema: Schema, Fingerprint: found}
}
