package store

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors that callers branch on.
var (
	ErrNotFound  = errors.New("not found")
	ErrAmbiguous = errors.New("ambiguous reference")
	ErrLeaseLost = errors.New("the campaign's lease was lost to another tuner")
	ErrFenced    = errors.New("the attempt is no longer the trial's latest")
	// ErrUnavailable: the database cannot be reached, or another process has kept
	// it locked for too long. The same call may succeed later.
	ErrUnavailable = errors.New("the database is unavailable")
	// ErrNotMigrated: the database has no schema yet, or an older one.
	ErrNotMigrated = errors.New("the database is not migrated")
)

// LeasedError says that another tuner runs the campaign.
type LeasedError struct {
	CampaignID string
	Owner      string
	// Token names the holder's lease to ForceLease.
	Token   int64
	Expires time.Time
}

// Error names the holder.
func (e *LeasedError) Error() string {
	return fmt.Sprintf("campaign %s is being run by %s (lease until %s)", e.CampaignID, e.Owner, e.Expires.UTC().Format(time.RFC3339))
}

// AmbiguousError says which campaigns a reference could mean.
type AmbiguousError struct {
	Reference string
	IDs       []string
}

// Error lists the ids, at most five of them.
func (e *AmbiguousError) Error() string {
	shown, more := e.IDs, ""
	if len(shown) > 5 {
		shown, more = shown[:5], fmt.Sprintf(" and %d more", len(e.IDs)-5)
	}
	return fmt.Sprintf("%q could be any of the campaigns %s%s: give one of these ids", e.Reference, strings.Join(shown, ", "), more)
}

// Is makes the error match ErrAmbiguous.
func (e *AmbiguousError) Is(target error) bool { return target == ErrAmbiguous }

// RepeatError says that the campaign has a trial of the same configuration,
// and that the new one was not declared as a repeat of it.
type RepeatError struct {
	CampaignID string
	Hash       string
	Number     int // of the earlier trial
}

// Error names the earlier trial.
func (e *RepeatError) Error() string {
	return fmt.Sprintf("campaign %s measured configuration %s already in trial %d: a deliberate repeat says so (repeat of %d)",
		e.CampaignID, e.Hash, e.Number, e.Number)
}

// InvalidError says that a field of a record cannot be stored.
type InvalidError struct {
	Record string // "trial", "campaign" ...
	Field  string // as in its JSON form: "points[0].metrics.output_throughput"
	Reason string // what it is and what was expected
}

// Error names the field.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.Record, e.Field, e.Reason)
}

// NonFiniteError says that a number of a record is NaN or infinite. Databases
// order such values differently, so none is stored.
type NonFiniteError struct {
	Record string
	Field  string // as in its JSON form
	Value  float64
}

// Error names the field.
func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("%s: %s is %v: only finite numbers are stored", e.Record, e.Field, e.Value)
}

// SchemaError says that the database was migrated by a newer program.
type SchemaError struct {
	Present, Known int64
}

// Error gives both versions.
func (e *SchemaError) Error() string {
	return fmt.Sprintf("the database has schema version %d, this program knows versions up to %d: use a newer nocturne", e.Present, e.Known)
}
