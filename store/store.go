package store

import (
	"context"
	"encoding/json"
	"time"

	"nocturne/runners"
)

// Store keeps everything. Implementations are safe for concurrent use by
// several goroutines and several processes.
type Store interface {
	// Migrate brings the schema to the newest version; concurrent callers wait
	// for each other. *SchemaError when the database is newer than this program.
	Migrate(ctx context.Context) error
	// Status tells the engine, where the data is (passwords masked) and the
	// schema version present and known.
	Status(ctx context.Context) (Status, error)
	Close() error

	// CreateCampaign adds a campaign with the next free run number of its
	// (Name, Instance) and returns it as stored. ID, Created and Updated are set
	// by the store when empty.
	CreateCampaign(ctx context.Context, campaign Campaign) (Campaign, error)
	// Campaign finds a campaign by name (its latest run by number; of several
	// machines' latest runs the one created last), NAME@RUN, id, or a unique prefix (at least 4 characters, in either
	// case) of an id, in this order. ErrNotFound; *AmbiguousError when several
	// machines have that NAME@RUN or several ids that prefix.
	Campaign(ctx context.Context, reference string) (Campaign, error)
	// Campaigns lists campaigns, newest first; those of one name on one machine by
	// their run numbers, latest first, whatever its clock did meanwhile.
	Campaigns(ctx context.Context, filter CampaignFilter) ([]Campaign, error)
	// UpdateCampaign changes the state, cause, spec, host, hardware and verdict
	// of a campaign. Ended is set when the state becomes one that has ended, and
	// taken back when a campaign goes on.
	UpdateCampaign(ctx context.Context, lease Lease, change CampaignChange) error

	// AcquireLease takes the campaign for owner for ttl by the clock of the
	// database. It fails with *LeasedError while a lease lasts, whoever holds it:
	// the same owner after a crash included.
	AcquireLease(ctx context.Context, campaignID, owner string, ttl time.Duration) (Lease, error)
	// ForceLease takes the campaign over from the holder of token, whether or not
	// that lease has expired. It is for a caller who knows that the holder's
	// process is dead. It fails with *LeasedError when somebody else has taken
	// the campaign meanwhile, so that two callers cannot both succeed.
	ForceLease(ctx context.Context, campaignID string, token int64, owner string, ttl time.Duration) (Lease, error)
	// RenewLease extends a lease; ErrLeaseLost when another owner has it or it was
	// released. A lease that expired without being taken is still the holder's.
	RenewLease(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error)
	// ReleaseLease gives the campaign up; ErrLeaseLost when it was lost before.
	ReleaseLease(ctx context.Context, lease Lease) error
	// Unattended lists the ids of campaigns that are on record as waiting, running
	// or restoring although nobody's lease on them lasts, by the clock of the
	// database: their tuner was killed, or lost the store or its host.
	Unattended(ctx context.Context) ([]string, error)

	// AddTrial appends a pending trial; its Number is one more than the last. ID
	// and Created are set by the store when empty. A configuration that the
	// campaign has already is refused with *RepeatError unless RepeatOf names an
	// earlier trial of it.
	AddTrial(ctx context.Context, lease Lease, trial Trial) (Trial, error)
	// ClaimTrial hands out the pending trial with the lowest number, starting
	// its next attempt; each is handed out once. ErrNotFound when none is pending.
	ClaimTrial(ctx context.Context, lease Lease, host string) (Trial, Attempt, error)
	// RecordLaunch stores what is needed to clean the attempt up after a crash.
	RecordLaunch(ctx context.Context, lease Lease, trialID string, attempt int, launch runners.Launch) error
	// RecordStage stores where the attempt is.
	RecordStage(ctx context.Context, lease Lease, trialID string, attempt int, stage runners.Stage) error
	// FinishTrial ends a running trial and its attempt with what the trial holds
	// (state, value, points, failure, proof, durations, stack ...). What was fixed
	// when it was added stays: number, role, reason, repeat and the hash of the
	// configuration. Started and Ended default to those of the attempt. ErrFenced
	// when the attempt is not the latest of a running trial, and nothing changes.
	FinishTrial(ctx context.Context, lease Lease, trial Trial, attempt int) error
	// RequeueTrial ends the attempt as failed or lost and makes the trial
	// pending again. ErrFenced as for FinishTrial.
	RequeueTrial(ctx context.Context, lease Lease, trialID string, attempt int, state AttemptState, failure *runners.Failure) error

	// Trials lists trials by number.
	Trials(ctx context.Context, campaignID string, filter TrialFilter) ([]Trial, error)
	// Attempts lists the attempts of a campaign's trials in order of start.
	Attempts(ctx context.Context, campaignID string) ([]Attempt, error)
	// RunningAttempts lists attempts that are on record as running, of all
	// campaigns whose Instance is given (all when empty).
	RunningAttempts(ctx context.Context, instance string) ([]Attempt, error)

	// Conclude stores the campaign's conclusion, replacing an earlier one. Campaign
	// and Run are those of the campaign, whatever the conclusion says.
	Conclude(ctx context.Context, lease Lease, conclusion Conclusion) error
	// Best lists conclusions that pass the filter, best first within each
	// (hardware, model, workload, objective), these groups by newest. With
	// Unconfirmed, a campaign without a conclusion answers with its best complete
	// trial: not confirmed, claim "unconfirmed", its launches the complete trials
	// of that configuration. Manual trials and trials with broken limits are
	// never an answer.
	Best(ctx context.Context, filter BestFilter) ([]Conclusion, error)

	// AppendEvent numbers and stores an event. Payload is the event's own fields,
	// an object or nil.
	AppendEvent(ctx context.Context, campaignID, name string, at time.Time, payload json.RawMessage) (Event, error)
	// Events lists at most limit events (all when 0) with Seq greater than after.
	Events(ctx context.Context, campaignID string, after int64, limit int) ([]Event, error)

	// Export reads one campaign with everything that belongs to it, as of one
	// instant. Import adds it to a store, and changes nothing when a campaign of
	// that id is there already. Ids stay; a campaign whose (name, run, instance)
	// another one has gets the next free run number.
	Export(ctx context.Context, campaignID string) (Archive, error)
	Import(ctx context.Context, archive Archive) (added bool, err error)
}

// ArchiveSchema is the version of the archive's form that this program writes
// and reads.
const ArchiveSchema = 1

// Archive is one campaign with everything that belongs to it. Its JSON form is
// one line of an export.
type Archive struct {
	Schema     int         `json:"schema"`
	Campaign   Campaign    `json:"campaign"`
	Trials     []Trial     `json:"trials"`
	Attempts   []Attempt   `json:"attempts"`
	Conclusion *Conclusion `json:"conclusion"`
	Events     []Event     `json:"events"`
}

// CampaignFilter selects campaigns; zero fields do not select.
type CampaignFilter struct {
	Name        string
	States      []CampaignState
	HardwareKey string
	Instance    string
	Limit       int
}

// CampaignChange holds the new values of a campaign; nil fields stay.
type CampaignChange struct {
	State       *CampaignState
	Cause       *string
	File        *string
	Spec        json.RawMessage
	Host        *string
	HardwareKey *string
	Hardware    json.RawMessage
	Verdict     json.RawMessage
}

// TrialFilter selects trials; zero fields do not select.
type TrialFilter struct {
	States []TrialState
	Roles  []Role
	// Summary leaves out points, proof and effective facts, which are large.
	Summary bool
}

// BestFilter selects conclusions; zero fields do not select. HardwareKeys and
// Instance select together with "or".
type BestFilter struct {
	HardwareKeys []string
	Instance     string
	Model        string
	Workload     string // name or key
	Driver       string
	CampaignID   string
	// Unconfirmed includes conclusions without fresh relaunches, and campaigns
	// without a conclusion.
	Unconfirmed bool
	// PerGroup is the most answers for each (hardware, model, workload,
	// objective); 0 means all.
	PerGroup int
	// Limit is the most answers altogether; 0 means all.
	Limit int
}

// Status describes a store.
type Status struct {
	Engine   string `json:"engine"`   // sqlite | postgresql, with its version
	Location string `json:"location"` // path or URL, passwords masked
	Version  int64  `json:"version"`  // schema version present
	Known    int64  `json:"known"`    // schema version of this program
	// Warnings names what may lose data: a file on tmpfs or an overlay.
	Warnings []string `json:"warnings"`
}
