// Package reference generates what the documentation must not get wrong: the
// JSON schemas of the campaign file and of every machine output, and the pages
// that list every key of the file, every reason code and every metric. The files
// are committed; a test compares them with what the types say.
package reference

import (
	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/spec"
)

// document is one machine output.
type document struct {
	name  string
	value any
	// from says which commands write it.
	from string
}

// documents are the machine outputs by the name of their schema.
var documents = []document{
	{"show", output.Show{}, "`show --json`"},
	{"trials", output.Trials{}, "`trials --json`, `try --json`"},
	{"campaigns", output.Campaigns{}, "`campaigns --json`"},
	{"best", output.Best{}, "`best --json`"},
	{"compare", output.Compare{}, "`compare --json`"},
	{"validate", output.Validate{}, "`validate --json`"},
	{"render", output.Render{}, "`render --json`"},
	{"fingerprint", output.Fingerprint{}, "`fingerprint --json`"},
	{"bench", output.Bench{}, "`bench --json`"},
	{"moved", output.Moved{}, "`import --json`, `db copy --json`"},
	{"store-status", output.StoreStatus{}, "`db status --json`, `db migrate --json`"},
	{"export", store.Archive{}, "each line of `export`"},
}

// event is what one event carries beside the header.
type event struct {
	name    string
	payload any
}

// events are the lines of `tune --json` and `demo --json`.
var events = []event{
	{output.EventCampaignStarted, output.CampaignStarted{}},
	{output.EventPlan, output.PlanMade{}},
	{output.EventPhase, output.PhaseEntered{}},
	{output.EventTrialStarted, output.TrialStarted{}},
	{output.EventStage, output.StageEntered{}},
	{output.EventRound, output.RoundMeasured{}},
	{output.EventTrialFinished, output.TrialFinished{}},
	{output.EventWarning, output.Warning{}},
	{output.EventVerdict, output.VerdictReached{}},
	{output.EventCampaignFinished, output.CampaignFinished{}},
}

// Files returns every generated file by its name below docs/reference.
func Files() (map[string][]byte, error) {
	files := map[string][]byte{
		"campaign-file.md":  campaignPage(),
		"machine-output.md": outputPage(),
		"metrics.md":        metricsPage(),
		"reasons.md":        reasonsPage(),
		"recipes.md":        recipesPage(),
	}
	var err error
	if files["schema/campaign.json"], err = spec.Schema(); err != nil {
		return nil, err
	}
	for _, document := range documents {
		if files["schema/"+document.name+".json"], err = Schema(document.name, document.value); err != nil {
			return nil, err
		}
	}
	for _, event := range events {
		if files["schema/event-"+event.name+".json"], err = eventSchema(event); err != nil {
			return nil, err
		}
	}
	return files, nil
}
