package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// The contract of the machine output, field by field: each field that the
// documentation lists must be there with its type, absent values as null. More
// fields may be there.

// shape checks a decoded value and returns what is wrong with it.
type shape func(at string, value any) []string

func fault(at, format string, args ...any) []string {
	return []string{at + ": " + fmt.Sprintf(format, args...)}
}

func kindOf[T any](name string) shape {
	return func(at string, value any) []string {
		if _, ok := value.(T); !ok {
			return fault(at, "%v is no %s", value, name)
		}
		return nil
	}
}

var (
	text    = kindOf[string]("text")
	number  = kindOf[json.Number]("number")
	boolean = kindOf[bool]("truth value")
)

func integer(at string, value any) []string {
	if n, ok := value.(json.Number); !ok || strings.ContainsAny(string(n), ".eE") {
		return fault(at, "%v is no whole number", value)
	}
	return nil
}

// instant is RFC 3339 in UTC.
func instant(at string, value any) []string {
	s, _ := value.(string)
	if _, err := time.Parse(time.RFC3339, s); err != nil || !strings.HasSuffix(s, "Z") {
		return fault(at, "%v is no instant in UTC", value)
	}
	return nil
}

// scalar is a value of a knob: null means unset.
func scalar(at string, value any) []string {
	switch value.(type) {
	case nil, string, json.Number, bool:
		return nil
	}
	return fault(at, "%v is no value of a knob", value)
}

func word(words ...string) shape {
	return func(at string, value any) []string {
		if s, ok := value.(string); !ok || !slices.Contains(words, s) {
			return fault(at, "%v is none of %v", value, words)
		}
		return nil
	}
}

func nullable(inner shape) shape {
	return func(at string, value any) []string {
		if value == nil {
			return nil
		}
		return inner(at, value)
	}
}

func list(inner shape) shape {
	return func(at string, value any) []string {
		items, ok := value.([]any)
		if !ok {
			return fault(at, "%v is no list", value)
		}
		var faults []string
		for i, item := range items {
			faults = append(faults, inner(fmt.Sprintf("%s[%d]", at, i), item)...)
		}
		return faults
	}
}

func dictionary(inner shape) shape {
	return func(at string, value any) []string {
		entries, ok := value.(map[string]any)
		if !ok {
			return fault(at, "%v is no object", value)
		}
		var faults []string
		for name, entry := range entries {
			faults = append(faults, inner(at+"."+name, entry)...)
		}
		return faults
	}
}

// interval is [lo, hi].
func interval(at string, value any) []string {
	ends, ok := value.([]any)
	if !ok || len(ends) != 2 {
		return fault(at, "%v is no [lo, hi]", value)
	}
	faults := list(number)(at, value)
	if len(faults) == 0 {
		lo, _ := ends[0].(json.Number).Float64()
		if hi, _ := ends[1].(json.Number).Float64(); lo > hi {
			return fault(at, "%v is the wrong way round", value)
		}
	}
	return faults
}

type fields map[string]shape

// object has at least these fields.
func object(wanted fields) shape {
	return func(at string, value any) []string {
		members, ok := value.(map[string]any)
		if !ok {
			return fault(at, "%v is no object", value)
		}
		var faults []string
		for _, name := range slices.Sorted(maps.Keys(wanted)) {
			member, there := members[name]
			if !there {
				faults = append(faults, fault(at, "%s is missing; what is absent is null", name)...)
				continue
			}
			faults = append(faults, wanted[name](at+"."+name, member)...)
		}
		return faults
	}
}

// document is an object with the version of the schema.
func document(wanted fields) shape {
	return object(with(wanted, fields{"schema": schemaOne}))
}

func schemaOne(at string, value any) []string {
	if value != json.Number("1") {
		return fault(at, "schema is %v, want 1", value)
	}
	return nil
}

func with(groups ...fields) fields {
	all := fields{}
	for _, group := range groups {
		maps.Copy(all, group)
	}
	return all
}

var (
	configurationShape = object(fields{"hash": text, "equivalent_to": nullable(text), "values": dictionary(scalar),
		"env": dictionary(text), "unset": list(text), "args": list(text)})
	failureShape  = object(fields{"class": word("infeasible", "transient", "environment"), "reason": text, "message": text})
	metricsShape  = dictionary(number)
	measuredShape = object(fields{"configuration": configurationShape, "value": nullable(number), "interval": nullable(interval), "launches": integer})
	trialShape    = object(fields{
		"trial": integer, "id": text, "attempt": integer,
		"state":         word("pending", "running", "complete", "pruned", "failed", "invalid", "void", "lost"),
		"role":          word("baseline", "current", "incumbent", "hint", "search", "control", "confirm", "probe", "manual"),
		"configuration": configurationShape, "host": text, "hardware_key": text, "stack_key": text, "value": nullable(number),
		"points":   list(object(fields{"concurrency": integer, "metrics": metricsShape, "rounds": list(object(fields{"metrics": metricsShape}))})),
		"failure":  nullable(failureShape),
		"proof":    list(object(fields{"knob": text, "requested": nullable(text), "observed": nullable(text), "status": text})),
		"expected": nullable(object(fields{"ratio": number, "interval": interval, "improvement": number, "crash": number})),
		"reason":   text, "started": nullable(instant), "ended": nullable(instant),
		"loading_s": nullable(number), "measuring_s": nullable(number), "overhead_s": nullable(number),
	})
	comparisonShape = object(fields{"against": text, "speedup": number, "interval": nullable(interval), "launches": integer})
	verdictShape    = object(fields{
		"claim": word("improved", "tie", "no_effect", "unconfirmed", "none"), "reason": text, "against": nullable(word("current", "baseline")),
		"speedup": nullable(number), "interval": nullable(interval), "confidence": number, "comparisons": list(comparisonShape),
		"minimal_detectable": nullable(number), "needed_knobs": nullable(list(text)),
	})
	objectiveShape = object(fields{"metric": text, "direction": word("maximize", "minimize"), "at": nullable(integer)})
	hardwareShape  = object(fields{"key": text, "name": text, "instance": text, "gpus": list(object(fields{"index": integer, "name": text, "uuid": text})), "cpu": text})
	stackShape     = object(fields{"key": text, "driver": text, "cuda": text, "nccl": text, "server": text})
	planShape      = object(fields{"items": list(object(fields{"role": text, "count": integer, "minutes": nullable(number)})), "launches": integer,
		"minutes_each": nullable(number), "source": text, "start": instant, "end": nullable(instant), "fits": boolean, "nights": integer})
	stateWord = word("waiting", "running", "restoring", "paused", "interrupted", "stopped", "complete", "failed")
	sideShape = object(fields{"campaign": text, "campaign_id": text, "run": integer, "hardware": hardwareShape, "stack": stackShape})
	campaign  = fields{"campaign_id": text, "campaign": text, "run": integer}
)

// documents are the answers by the name of their command.
var documents = map[string]shape{
	"trials": document(with(campaign, fields{"trials": list(trialShape)})),
	"show": document(with(campaign, fields{
		"state": stateWord, "objective": objectiveShape, "baseline": nullable(measuredShape), "current": nullable(measuredShape), "best": nullable(measuredShape),
		"verdict": nullable(verdictShape), "trials": dictionary(integer), "failures": dictionary(integer), "stacks": list(stackShape), "hardware": nullable(hardwareShape),
		"limits": list(object(fields{"metric": text, "max": nullable(number), "baseline": nullable(number), "best": nullable(number), "met": nullable(boolean)})),
		"importance": list(object(fields{"knob": text, "share": number, "interval": nullable(interval),
			"curve": list(object(fields{"value": scalar, "effect": number, "interval": interval}))})),
		"interactions": list(object(fields{"knobs": list(text), "spread": number, "interval": interval})),
		"tied": list(object(fields{"configuration": configurationShape, "ratio": number, "interval": interval, "launches": integer,
			"changes": integer, "simplest": boolean})),
		"time":            object(fields{"total_s": number, "loading_s": number, "measuring_s": number, "overhead_s": number}),
		"running":         nullable(object(fields{"trial": integer, "id": text, "role": text, "attempt": integer, "stage": text, "started": instant})),
		"failure_details": list(object(fields{"class": text, "reason": text, "trials": list(integer), "message": text, "log_path": text})),
	})),
	"campaigns": document(fields{"campaigns": list(object(with(campaign, fields{"state": stateWord, "model": text, "hardware": text,
		"claim": nullable(text), "speedup": nullable(number), "created": instant, "ended": nullable(instant)})))}),
	"best": document(fields{"best": list(object(fields{"hardware": hardwareShape, "stack": stackShape, "model": text, "workload": object(fields{"key": text}),
		"configuration": configurationShape, "value": number, "interval": nullable(interval), "speedup": nullable(number), "launches": integer,
		"confirmed": boolean, "campaign": text, "time": instant}))}),
	"compare": document(fields{"a": sideShape, "b": sideShape, "differences": list(object(fields{"field": text, "a": text, "b": text})),
		"attribution": word("driver", "stack", "none"), "reasons": list(text), "ranking": nullable(number), "best_a": nullable(measuredShape), "best_b": nullable(measuredShape),
		"pairs": list(object(fields{"configuration": configurationShape, "a": measuredShape, "b": measuredShape, "ratio": number,
			"interval": nullable(interval), "verdict": word("faster", "slower", "equivalent", "inconclusive")}))}),
	"validate": document(fields{"campaign": text, "objective": objectiveShape, "sampler": text, "configurations": number, "exact": boolean,
		"knobs":    list(object(fields{"knob": text, "kind": text, "values": list(scalar), "default": scalar})),
		"baseline": configurationShape, "timeouts_s": dictionary(number), "plan": planShape,
		"starts": list(object(fields{"role": text, "values": dictionary(scalar), "reason": text}))}),
	"render":       document(fields{"configuration": configurationShape, "args": list(text), "env": dictionary(text), "secrets": list(text), "removed": list(text)}),
	"fingerprint":  document(fields{"hardware": hardwareShape, "stack": stackShape, "settings": dictionary(text), "unreadable": list(text)}),
	"bench":        document(fields{"model": text, "outcome": text, "metrics": metricsShape, "faults": list(failureShape), "failures": dictionary(object(fields{"count": integer, "first": text}))}),
	"moved":        document(fields{"added": integer, "known": integer}),
	"store-status": document(fields{"engine": text, "location": text, "version": integer, "known": integer, "warnings": list(text)}),
}

// events are the fields of each event beside its header.
var events = map[string]fields{
	"campaign_started":  {"resumed": boolean, "store": text, "host": text, "hardware": hardwareShape, "objective": objectiveShape},
	"plan":              {"plan": planShape},
	"phase":             {"phase": text, "launches": integer},
	"trial_started":     {"trial": integer, "id": text, "attempt": integer, "role": text, "configuration": configurationShape, "reason": text},
	"stage":             {"trial": integer, "stage": text, "usual_s": nullable(number)},
	"round":             {"trial": integer, "round": integer, "concurrency": integer, "metrics": metricsShape},
	"trial_finished":    {"trial": trialShape},
	"warning":           {"message": text},
	"verdict":           {"verdict": verdictShape, "best": nullable(measuredShape)},
	"campaign_finished": {"state": stateWord, "exit_status": integer, "restored": nullable(boolean)},
}

var header = with(campaign, fields{"schema": schemaOne, "seq": integer, "event": text, "time": instant})

// checkDocument checks one answer.
func checkDocument(name, answer string) []string {
	shape, known := documents[name]
	if !known {
		return fault(name, "there is no such document; known are %v", slices.Sorted(maps.Keys(documents)))
	}
	value, err := decodeOne(answer)
	if err != nil {
		return fault(name, "%v", err)
	}
	return append(shape(name, value), checkSchema(name, name, value)...)
}

// checkEvents checks the lines of `tune --json`. The last two lines of a
// concluded campaign are verdict and campaign_finished.
func checkEvents(lines string) []string {
	var faults, names []string
	last := int64(0)
	for i, line := range strings.Split(strings.TrimSuffix(lines, "\n"), "\n") {
		at := fmt.Sprintf("line %d", i+1)
		value, err := decodeOne(line)
		if err != nil {
			return append(faults, fault(at, "%v: %s", err, line)...)
		}
		members, _ := value.(map[string]any)
		name, _ := members["event"].(string)
		names = append(names, name)
		wanted, known := events[name]
		if !known {
			faults = append(faults, fault(at, "unknown event %q", name)...)
		}
		faults = append(faults, object(with(header, wanted))(at+" "+name, value)...)
		faults = append(faults, checkSchema(at, "event-"+name, value)...)
		seq, _ := members["seq"].(json.Number)
		if n, _ := seq.Int64(); n <= last {
			faults = append(faults, fault(at, "seq %v after %d", seq, last)...)
		} else {
			last = n
		}
	}
	if names[0] != "campaign_started" || names[len(names)-1] != "campaign_finished" {
		faults = append(faults, fault("events", "the first is %s, the last %s", names[0], names[len(names)-1])...)
	}
	if at := slices.Index(names, "verdict"); at >= 0 && at != len(names)-2 {
		faults = append(faults, fault("events", "verdict is number %d of %d", at+1, len(names))...)
	}
	return faults
}

func decodeOne(answer string) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(answer)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one document")
	}
	return value, nil
}
