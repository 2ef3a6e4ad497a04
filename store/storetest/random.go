package storetest

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
)

// The generators draw whatever a record may hold, but for what a store may
// change: parts of a microsecond, and NUL characters in texts.
var (
	randomText = rapid.Map(rapid.StringN(0, 40, -1), func(s string) string { return strings.ReplaceAll(s, "\x00", "") })
	// randomLabel is short enough for an indexed column.
	randomLabel  = rapid.Map(rapid.StringN(1, 20, 80), func(s string) string { return "x" + strings.ReplaceAll(s, "\x00", "") })
	randomNumber = rapid.OneOf(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64), rapid.Float64Range(-1000, 1000),
		rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, 1e21, 5e-324, 0.1, math.MaxFloat64, 1 << 53, 1 << 63}))
	randomTime  = rapid.Map(rapid.Int64Range(0, 4e15), func(us int64) time.Time { return time.UnixMicro(us).UTC() })
	randomTexts = rapid.MapOfN(randomLabel, randomText, 1, 3)
)

// maybe draws a pointer, nil every other time.
func maybe[T any](rt *rapid.T, generator *rapid.Generator[T], label string) *T {
	if rapid.Bool().Draw(rt, "has "+label) {
		return pointer(generator.Draw(rt, label))
	}
	return nil
}

// someOf draws a slice, nil rather than empty: JSON knows both, columns do not.
func someOf[T any](rt *rapid.T, generator *rapid.Generator[T], label string) []T {
	if drawn := rapid.SliceOfN(generator, 0, 3).Draw(rt, label); len(drawn) > 0 {
		return drawn
	}
	return nil
}

// randomDocument draws a JSON document, or none.
var randomDocument = rapid.Custom(func(rt *rapid.T) json.RawMessage {
	if rapid.Bool().Draw(rt, "absent") {
		return nil
	}
	document, err := json.Marshal(randomValue(rt, 2))
	if err != nil || string(document) == "null" {
		return nil
	}
	return document
})

func randomValue(rt *rapid.T, depth int) any {
	switch kind := rapid.IntRange(0, 7).Draw(rt, "kind"); {
	case kind == 0:
		return nil
	case kind == 1:
		return rapid.Bool().Draw(rt, "bool")
	case kind == 2:
		return randomNumber.Draw(rt, "number")
	case kind == 3:
		return rapid.Uint64().Draw(rt, "integer")
	case kind == 4 || depth == 0:
		return randomText.Draw(rt, "text")
	case kind == 5:
		list := make([]any, rapid.IntRange(0, 3).Draw(rt, "length"))
		for i := range list {
			list[i] = randomValue(rt, depth-1)
		}
		return list
	}
	object := make(map[string]any)
	for range rapid.IntRange(0, 3).Draw(rt, "size") {
		object[randomText.Draw(rt, "key")] = randomValue(rt, depth-1)
	}
	return object
}

var randomKnob = rapid.Custom(func(rt *rapid.T) search.Value {
	switch rapid.IntRange(0, 4).Draw(rt, "kind") {
	case 0:
		return search.Text(randomText.Draw(rt, "text"))
	case 1:
		return search.Int(rapid.Int64().Draw(rt, "int"))
	case 2:
		return search.Float(rapid.Float64Range(-1000, 1000).Draw(rt, "float"))
	case 3:
		return search.Bool(rapid.Bool().Draw(rt, "bool"))
	}
	return search.Unset
})

var randomConfiguration = rapid.Custom(func(rt *rapid.T) store.Configuration {
	return store.Configuration{
		Hash:         "c1:" + randomLabel.Draw(rt, "hash"),
		EquivalentTo: maybe(rt, randomLabel, "equivalent"),
		Values:       rapid.MapOfN(randomLabel, randomKnob, 0, 4).Draw(rt, "values"),
		Env:          rapid.MapOfN(randomLabel, randomText, 0, 3).Draw(rt, "env"),
		Unset:        someOf(rt, randomLabel, "unset"),
		Args:         someOf(rt, randomText, "args"),
	}
})

var randomObjective = rapid.Custom(func(rt *rapid.T) store.Objective {
	objective := store.Objective{
		Metric:    randomLabel.Draw(rt, "metric"),
		Direction: rapid.SampledFrom([]string{"maximize", "minimize"}).Draw(rt, "direction"),
		At:        maybe(rt, rapid.IntRange(1, 1024), "at"),
	}
	if rapid.Bool().Draw(rt, "limited") {
		objective.Limits = map[string]store.Limit{randomLabel.Draw(rt, "limited metric"): {Max: maybe(rt, randomNumber, "max")}}
	}
	return objective
})

var randomFailure = rapid.Custom(func(rt *rapid.T) runners.Failure {
	return runners.Failure{
		Class:   rapid.SampledFrom([]runners.Class{runners.ClassInfeasible, runners.ClassTransient, "a later word"}).Draw(rt, "class"),
		Reason:  randomLabel.Draw(rt, "reason"),
		Message: randomText.Draw(rt, "message"),
	}
})

var randomMetrics = rapid.Custom(func(rt *rapid.T) runners.Metrics {
	return rapid.MapOfN(randomLabel, randomNumber, 0, 3).Draw(rt, "metrics")
})

var randomPoint = rapid.Custom(func(rt *rapid.T) runners.PointResult {
	return runners.PointResult{
		Concurrency: rapid.IntRange(0, 512).Draw(rt, "concurrency"),
		Metrics:     randomMetrics.Draw(rt, "metrics"),
		Rounds: someOf(rt, rapid.Map(randomMetrics, func(metrics runners.Metrics) runners.RoundResult {
			return runners.RoundResult{Metrics: metrics}
		}), "rounds"),
		Histograms: randomTexts.Draw(rt, "histograms"),
	}
})

var randomProof = rapid.Custom(func(rt *rapid.T) runners.Proof {
	return runners.Proof{Knob: randomLabel.Draw(rt, "knob"), Requested: maybe(rt, randomText, "requested"),
		Observed: maybe(rt, randomText, "observed"), Status: runners.ProofUnknown, Detail: randomText.Draw(rt, "detail")}
})

// randomOutcome draws what the end of a trial sets.
func randomOutcome(rt *rapid.T, trial store.Trial) store.Trial {
	trial.State = rapid.SampledFrom([]store.TrialState{store.TrialComplete, store.TrialPruned, store.TrialFailed, store.TrialVoid}).Draw(rt, "state")
	trial.Host, trial.HardwareKey = randomText.Draw(rt, "host"), randomLabel.Draw(rt, "hardware")
	trial.StackKey, trial.Stack = randomText.Draw(rt, "stack key"), randomDocument.Draw(rt, "stack")
	trial.Value, trial.StandardError = maybe(rt, randomNumber, "value"), maybe(rt, randomNumber, "error")
	trial.BrokenLimits = someOf(rt, randomLabel, "broken limits")
	trial.Points, trial.Proof = someOf(rt, randomPoint, "points"), someOf(rt, randomProof, "proof")
	if rapid.Bool().Draw(rt, "has facts") {
		trial.Effective = randomTexts.Draw(rt, "facts")
	}
	trial.Failure = maybe(rt, randomFailure, "failure")
	trial.LogPath = randomText.Draw(rt, "log")
	trial.Started, trial.Ended = pointer(randomTime.Draw(rt, "started")), pointer(randomTime.Draw(rt, "ended"))
	trial.LoadingS, trial.MeasuringS = maybe(rt, randomNumber, "loading"), maybe(rt, randomNumber, "measuring")
	return trial
}

var randomExpected = rapid.Custom(func(rt *rapid.T) store.Expected {
	return store.Expected{
		Ratio: randomNumber.Draw(rt, "ratio"), Interval: [2]float64{randomNumber.Draw(rt, "low"), randomNumber.Draw(rt, "high")},
		Improvement: randomNumber.Draw(rt, "improvement"), Crash: rapid.Float64Range(0, 1).Draw(rt, "crash"),
	}
})

// Archives draws whole campaigns.
func Archives() *rapid.Generator[store.Archive] {
	return rapid.Custom(func(rt *rapid.T) store.Archive {
		archive := store.Archive{Schema: store.ArchiveSchema, Campaign: randomCampaign(rt)}
		id := archive.Campaign.ID
		for i := range rapid.IntRange(0, 3).Draw(rt, "trials") {
			trial := store.Trial{
				ID: ulid.Make().String(), CampaignID: id, Number: i + 1, Role: store.RoleSearch, Attempt: 1,
				Configuration: randomConfiguration.Draw(rt, "configuration"), Reason: randomText.Draw(rt, "reason"),
				Expected: maybe(rt, randomExpected, "expected"), Created: randomTime.Draw(rt, "created"),
			}
			trial.Configuration.Hash += fmt.Sprint(i)
			if i > 0 && rapid.Bool().Draw(rt, "repeats") {
				trial.RepeatOf, trial.Configuration = 1, archive.Trials[0].Configuration
			}
			archive.Trials = append(archive.Trials, randomOutcome(rt, trial))
			archive.Attempts = append(archive.Attempts, store.Attempt{
				TrialID: trial.ID, CampaignID: id, Number: 1, State: store.AttemptComplete, Host: randomText.Draw(rt, "host"),
				Stage: runners.Stage(randomText.Draw(rt, "stage")), Failure: maybe(rt, randomFailure, "failure"),
				Started: time.UnixMicro(int64(i)).UTC(), Ended: maybe(rt, randomTime, "ended"),
			})
		}
		for i := range rapid.IntRange(0, 3).Draw(rt, "events") {
			archive.Events = append(archive.Events, store.Event{CampaignID: id, Seq: int64(i + 1), Name: randomLabel.Draw(rt, "event"),
				Time: randomTime.Draw(rt, "time"), Payload: randomDocument.Draw(rt, "payload")})
		}
		if rapid.Bool().Draw(rt, "concluded") {
			conclusion := randomConclusion(rt)
			conclusion.CampaignID, conclusion.Campaign, conclusion.Run = id, archive.Campaign.Name, archive.Campaign.Run
			archive.Conclusion = &conclusion
		}
		return archive
	})
}

func randomCampaign(rt *rapid.T) store.Campaign {
	id := ulid.Make().String()
	return store.Campaign{
		ID: id, Name: id + randomLabel.Draw(rt, "name"), Run: rapid.IntRange(1, 1000).Draw(rt, "run"), State: "a later word",
		Cause: randomText.Draw(rt, "cause"), File: randomText.Draw(rt, "file"), Spec: randomDocument.Draw(rt, "spec"),
		SpecDigest: randomText.Draw(rt, "digest"), Seed: rapid.Uint64().Draw(rt, "seed"), Host: randomText.Draw(rt, "host"),
		HardwareKey: randomLabel.Draw(rt, "hardware key"), Instance: randomLabel.Draw(rt, "instance"), Hardware: randomDocument.Draw(rt, "hardware"),
		Model: randomLabel.Draw(rt, "model"), ModelKey: randomLabel.Draw(rt, "model key"), Workload: randomDocument.Draw(rt, "workload"),
		WorkloadKey: randomLabel.Draw(rt, "workload key"), Objective: randomObjective.Draw(rt, "objective"),
		Created: randomTime.Draw(rt, "created"), Updated: randomTime.Draw(rt, "updated"), Ended: maybe(rt, randomTime, "ended"),
		Verdict: randomDocument.Draw(rt, "verdict"),
	}
}

func randomConclusion(rt *rapid.T) store.Conclusion {
	conclusion := store.Conclusion{
		HardwareKey: randomLabel.Draw(rt, "hardware key"), Instance: randomLabel.Draw(rt, "instance"), Hardware: randomDocument.Draw(rt, "hardware"),
		StackKey: randomLabel.Draw(rt, "stack key"), Stack: randomDocument.Draw(rt, "stack"), Driver: randomLabel.Draw(rt, "driver"),
		Model: randomLabel.Draw(rt, "model"), ModelKey: randomLabel.Draw(rt, "model key"), Workload: randomDocument.Draw(rt, "workload"),
		WorkloadKey: randomLabel.Draw(rt, "workload key"), Objective: randomObjective.Draw(rt, "objective"),
		Configuration: randomConfiguration.Draw(rt, "configuration"), Value: randomNumber.Draw(rt, "value"), Speedup: maybe(rt, randomNumber, "speedup"),
		Launches: rapid.IntRange(0, 100).Draw(rt, "launches"), Confirmed: rapid.Bool().Draw(rt, "confirmed"), Claim: randomLabel.Draw(rt, "claim"),
		Time: randomTime.Draw(rt, "time"),
	}
	if rapid.Bool().Draw(rt, "has interval") {
		conclusion.Interval = &[2]float64{randomNumber.Draw(rt, "low"), randomNumber.Draw(rt, "high")}
	}
	return conclusion
}

// testTrialRoundTrip takes random trials through their life.
func testTrialRoundTrip(t *testing.T, place Place) {
	s := New(t, place)
	rapid.Check(t, func(rt *rapid.T) {
		campaign, lease := create(t, s, campaignOf("night"))
		proposal := store.Trial{Role: store.RoleSearch, Configuration: randomConfiguration.Draw(rt, "configuration"), Reason: randomText.Draw(rt, "reason"),
			Expected: maybe(rt, randomExpected, "expected")}
		if _, err := s.AddTrial(t.Context(), lease, proposal); err != nil {
			rt.Fatal(err)
		}
		trial, attempt := claim(t, s, lease)
		trial = randomOutcome(rt, trial)
		if err := s.FinishTrial(t.Context(), lease, trial, attempt.Number); err != nil {
			rt.Fatal(err)
		}
		trials, err := s.Trials(t.Context(), campaign.ID, store.TrialFilter{})
		if diff := differences([]store.Trial{trial}, trials); err != nil || diff != "" {
			rt.Fatalf("the trial differs: %v (-finished +stored):\n%s", err, diff)
		}
	})
}
