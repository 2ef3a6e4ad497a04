package sqlstore

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"nocturne/store"
)

// maxLabel is the most bytes of a name, label or key: several of them together
// must fit one entry of a PostgreSQL index (2704 bytes).
const maxLabel = 256

// checkFinite returns *store.NonFiniteError for the first number of a record
// that is NaN or infinite, wherever it lies within.
func checkFinite(record string, value any) error {
	if field, number, found := findNonFinite(reflect.ValueOf(value), ""); found {
		return &store.NonFiniteError{Record: record, Field: field, Value: number}
	}
	return nil
}

func findNonFinite(v reflect.Value, path string) (field string, number float64, found bool) {
	switch v.Kind() {
	case reflect.Float64:
		number = v.Float()
		return path, number, math.IsNaN(number) || math.IsInf(number, 0)
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return findNonFinite(v.Elem(), path)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return "", 0, false
		}
		for i := range v.Len() {
			if field, number, found = findNonFinite(v.Index(i), path+"["+strconv.Itoa(i)+"]"); found {
				return field, number, true
			}
		}
	case reflect.Map:
		for iterator := v.MapRange(); iterator.Next(); {
			if field, number, found = findNonFinite(iterator.Value(), join(path, iterator.Key().String())); found {
				return field, number, true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			part := v.Type().Field(i)
			if !part.IsExported() {
				continue
			}
			name, _, _ := strings.Cut(part.Tag.Get("json"), ",")
			if field, number, found = findNonFinite(v.Field(i), join(path, name)); found {
				return field, number, true
			}
		}
	}
	return "", 0, false
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// fields are texts of a record by the name of their field.
type fields map[string]string

// checkLabels returns *store.InvalidError for a text too long to be indexed.
func checkLabels(record string, labels fields) error {
	for field, value := range labels {
		if len(value) > maxLabel {
			return &store.InvalidError{Record: record, Field: field,
				Reason: fmt.Sprintf("has %d bytes, at most %d are stored", len(value), maxLabel)}
		}
	}
	return nil
}

// checkPresent returns *store.InvalidError for a text that is missing.
func checkPresent(record string, required fields) error {
	for field, value := range required {
		if value == "" {
			return &store.InvalidError{Record: record, Field: field, Reason: "is empty"}
		}
	}
	return nil
}

// checkID returns *store.InvalidError when id is not a ULID in its usual form.
func checkID(record, id string) error {
	parsed, err := ulid.ParseStrict(id)
	if err != nil || parsed.String() != id {
		return &store.InvalidError{Record: record, Field: "id",
			Reason: fmt.Sprintf("%q is not a ULID (26 characters, upper case)", id)}
	}
	return nil
}

// checkTTL returns *store.InvalidError for a lease that would not last.
func checkTTL(ttl time.Duration) error {
	if ttl < time.Microsecond {
		return &store.InvalidError{Record: "lease", Field: "ttl", Reason: fmt.Sprintf("is %v, it must be positive", ttl)}
	}
	return nil
}

// checkObjective returns *store.InvalidError unless the objective says what is
// better.
func checkObjective(record string, objective store.Objective) error {
	if objective.Direction != "maximize" && objective.Direction != "minimize" {
		return &store.InvalidError{Record: record, Field: "objective.direction",
			Reason: fmt.Sprintf("is %q, it must be maximize or minimize", objective.Direction)}
	}
	return checkPresent(record, fields{"objective.metric": objective.Metric})
}

// score turns a value so that higher is better.
func score(objective store.Objective, value float64) float64 {
	if objective.Minimize() {
		return -value
	}
	return value
}

// groupKey names what values compare within: the hardware, the model (its label
// when it has no key), the workload and the objective.
func groupKey(hardware, model, modelKey, workload string, objective store.Objective) string {
	parts := []string{hardware, cmp.Or(modelKey, model), workload, objective.String()}
	digest := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(digest[:16])
}
