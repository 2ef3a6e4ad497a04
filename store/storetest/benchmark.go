package storetest

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"nocturne/runners"
	"nocturne/store"
)

// bestTrials is how many trials are stored when Best is measured. A million
// takes minutes to store: go test -bench Best ./store/sqlite -trials 1000000.
var bestTrials = flag.Int("trials", 100_000, "trials stored for the benchmark of Best")

// Benchmark measures what a person or a trial waits for.
func Benchmark(b *testing.B, place Place) {
	b.Run("Trial", func(b *testing.B) { benchmarkTrial(b, place) })
	b.Run(fmt.Sprintf("Best/%d", *bestTrials), func(b *testing.B) { benchmarkBest(b, place, *bestTrials) })
}

// benchmarkTrial makes all calls of one trial: a launch, seven stages, a dozen
// events, and a result of usual size.
func benchmarkTrial(b *testing.B, place Place) {
	s := New(b, place)
	campaign, lease := create(b, s, campaignOf("night"))
	ctx := b.Context()
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	events := func(count int) {
		for range count {
			_, err := s.AppendEvent(ctx, campaign.ID, "round", time.Time{}, []byte(`{"point":0,"round":1,"metrics":{"output_throughput":88.8}}`))
			check(err)
		}
	}
	for i := 0; b.Loop(); i++ {
		add(b, s, lease, fmt.Sprint(i), store.RoleSearch)
		trial, attempt := claim(b, s, lease)
		check(s.RecordLaunch(ctx, lease, trial.ID, attempt.Number, launchOf(1)))
		for _, stage := range []runners.Stage{runners.Preparing, runners.Launching, runners.Loading, runners.Verifying, runners.Warming, runners.Measuring, runners.Stopping} {
			check(s.RecordStage(ctx, lease, trial.ID, attempt.Number, stage))
		}
		events(12)
		done := finishedTrial(trial)
		done.Points[0].Histograms["itl"] = strings.Repeat("HISTFAAAA", 500)
		check(s.FinishTrial(ctx, lease, done, attempt.Number))
	}
}

// benchmarkBest asks a store with so many trials, 50 for each campaign, nine of
// ten campaigns concluded, on 20 kinds of hardware with 5 models each.
func benchmarkBest(b *testing.B, place Place, trials int) {
	const each = 50
	url := place(b)
	s := openAt(b, url)
	if err := s.Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	started := time.Now()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range trials / each {
		if added, err := s.Import(b.Context(), usualArchive(random, i, each)); err != nil || !added {
			b.Fatal(added, err)
		}
	}
	b.Logf("%d trials stored in %v", trials, time.Since(started).Round(time.Second))
	if strings.HasPrefix(url, "postgres") {
		if _, err := raw(b, url).Exec("vacuum analyze"); err != nil { // as autovacuum does
			b.Fatal(err)
		}
	}
	machine := []string{"hw1:3"}
	for _, question := range []struct {
		name   string
		filter store.BestFilter
	}{
		{"machine", store.BestFilter{HardwareKeys: machine, Instance: "box-3", PerGroup: 1}},
		{"machine-unconfirmed", store.BestFilter{HardwareKeys: machine, Instance: "box-3", PerGroup: 1, Unconfirmed: true}},
		{"machine-model-all", store.BestFilter{HardwareKeys: machine, Model: "model-2"}},
		{"any", store.BestFilter{PerGroup: 1}},
		{"any-unconfirmed", store.BestFilter{PerGroup: 1, Unconfirmed: true}},
		{"campaign", store.BestFilter{CampaignID: campaignID(7), Unconfirmed: true}},
	} {
		b.Run(question.name, func(b *testing.B) {
			answers := 0
			for b.Loop() {
				best, err := s.Best(b.Context(), question.filter)
				if err != nil || len(best) == 0 {
					b.Fatal(len(best), err)
				}
				answers = len(best)
			}
			b.ReportMetric(float64(answers), "answers")
		})
	}
}

func campaignID(i int) string {
	var id ulid.ULID
	if err := id.SetTime(1_800_000_000_000 + uint64(i)); err != nil {
		panic(err) // the time is far from the largest
	}
	return id.String()
}

func usualArchive(random *rand.Rand, i, trials int) store.Archive {
	kind := i % 20 // every model on every kind
	campaign := campaignOf(fmt.Sprintf("campaign-%d", i))
	campaign.ID, campaign.Run, campaign.State = campaignID(i), 1, store.CampaignComplete
	campaign.HardwareKey, campaign.Instance = fmt.Sprintf("hw1:%d", kind), fmt.Sprintf("box-%d", kind)
	campaign.Model, campaign.ModelKey = fmt.Sprintf("model-%d", i/20%5), fmt.Sprintf("m1:%d", i/20%5)
	campaign.Hardware = usualHardware(kind)
	campaign.File, campaign.Spec = strings.Repeat("a campaign file\n", 200), []byte(`{"spec":"`+strings.Repeat("s", 4000)+`"}`)
	campaign.Created = time.UnixMilli(1_800_000_000_000).UTC().Add(time.Duration(i) * time.Hour)
	campaign.Updated = campaign.Created
	archive := store.Archive{Schema: store.ArchiveSchema, Campaign: campaign}
	for n := range trials {
		trial := finishedTrial(store.Trial{
			ID: ulid.Make().String(), CampaignID: campaign.ID, Number: n + 1, Role: store.RoleSearch, Attempt: 1,
			Configuration: configurationOf(fmt.Sprint(n)), HardwareKey: campaign.HardwareKey, Created: campaign.Created,
		})
		trial.Value, trial.BrokenLimits = pointer(60+40*random.Float64()), nil
		archive.Trials = append(archive.Trials, trial)
	}
	if fate := random.IntN(10); fate > 0 {
		conclusion := conclusionOf("best", 60+40*random.Float64(), fate > 1)
		conclusion.CampaignID, conclusion.HardwareKey, conclusion.Instance = campaign.ID, campaign.HardwareKey, campaign.Instance
		conclusion.Model, conclusion.ModelKey, conclusion.Hardware, conclusion.Time = campaign.Model, campaign.ModelKey, campaign.Hardware, campaign.Created
		archive.Conclusion = &conclusion
	}
	return archive
}

// usualHardware describes a machine with eight GPUs.
func usualHardware(kind int) json.RawMessage {
	hardware := runners.Hardware{Key: fmt.Sprintf("hw1:%d", kind), Name: "8 x GPU", CPU: "CPU", Sockets: 2, NUMANodes: 2, MemoryMiB: 1 << 20}
	for i := range 8 {
		hardware.GPUs = append(hardware.GPUs, runners.GPU{Index: i, Name: "GPU", UUID: fmt.Sprintf("GPU-%d-%d", kind, i), MemoryMiB: 97887, PCIeGenMax: 5, PCIeWidthMax: 16})
		hardware.Links = append(hardware.Links, strings.Split("X PIX PXB NODE SYS SYS SYS SYS", " "))
	}
	document, err := json.Marshal(hardware)
	if err != nil {
		panic(err) // plain data
	}
	return document
}
