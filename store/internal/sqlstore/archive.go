package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"nocturne/store"
)

// Export reads one campaign with everything that belongs to it.
func (s *Store) Export(ctx context.Context, campaignID string) (archive store.Archive, err error) {
	what := "export campaign " + campaignID
	tx, err := s.Read.BeginTx(ctx, s.dialect.Snapshot)
	if err != nil {
		return archive, s.wrap(what, err)
	}
	err = s.finish(tx, func(tx *transaction) error {
		if archive, err = tx.export(ctx, campaignID); err != nil {
			return err
		}
		return canonicalDocuments(&archive)
	})
	return archive, s.wrap(what, err)
}

func (tx *transaction) export(ctx context.Context, campaignID string) (store.Archive, error) {
	archive := store.Archive{Schema: store.ArchiveSchema}
	var err error
	archive.Campaign, err = scanCampaign(tx.QueryRowContext(ctx, selectCampaigns+" where id = $1", campaignID))
	if errors.Is(err, sql.ErrNoRows) {
		return archive, store.ErrNotFound
	}
	if err != nil {
		return archive, err
	}
	if archive.Trials, err = collect(ctx, tx, scanTrial, selectTrials+" where t.campaign_id = $1 order by t.number", campaignID); err != nil {
		return archive, err
	}
	if archive.Attempts, err = collect(ctx, tx, scanAttempt, attemptsOfCampaign, campaignID); err != nil {
		return archive, err
	}
	if archive.Events, err = collect(ctx, tx, scanEvent, selectEvents, campaignID, 0); err != nil {
		return archive, err
	}
	conclusions, err := collect(ctx, tx, scanConclusion, selectConclusions+" where b.campaign_id = $1", campaignID)
	if len(conclusions) == 1 {
		archive.Conclusion = &conclusions[0]
	}
	return archive, err
}

// canonicalDocuments makes the exports of all stores equal.
func canonicalDocuments(archive *store.Archive) error {
	documents := []*json.RawMessage{&archive.Campaign.Spec, &archive.Campaign.Hardware, &archive.Campaign.Workload, &archive.Campaign.Verdict}
	for i := range archive.Trials {
		documents = append(documents, &archive.Trials[i].Stack)
	}
	for i := range archive.Events {
		documents = append(documents, &archive.Events[i].Payload)
	}
	if c := archive.Conclusion; c != nil {
		documents = append(documents, &c.Hardware, &c.Stack, &c.Workload)
	}
	for _, document := range documents {
		if *document == nil {
			continue
		}
		var err error
		if *document, err = canonical(*document); err != nil {
			return err
		}
	}
	return nil
}

// Import adds a campaign from another store.
func (s *Store) Import(ctx context.Context, archive store.Archive) (added bool, err error) {
	if err := checkArchive(archive); err != nil {
		return false, err
	}
	campaign := archive.Campaign
	err = s.change(ctx, "import campaign "+campaign.ID, func(tx *transaction) error {
		var present int
		if err := tx.QueryRowContext(ctx, "select count(*) from campaigns where id = $1", campaign.ID).Scan(&present); err != nil {
			return err
		}
		if present > 0 {
			return nil
		}
		added = true
		return s.importRecords(ctx, tx, archive)
	})
	return added && err == nil, err
}

func (s *Store) importRecords(ctx context.Context, tx *transaction, archive store.Archive) error {
	if err := s.insertCampaign(ctx, tx, archive.Campaign); err != nil {
		return err
	}
	// A repeat refers to an earlier trial.
	trials := slices.SortedFunc(slices.Values(archive.Trials), func(a, b store.Trial) int { return a.Number - b.Number })
	if err := s.insertTrials(ctx, tx, archive.Campaign.Objective, trials); err != nil {
		return err
	}
	if err := s.insertAttempts(ctx, tx, archive.Attempts); err != nil {
		return err
	}
	if err := s.insertEvents(ctx, tx, archive.Events); err != nil {
		return err
	}
	if archive.Conclusion == nil {
		return nil
	}
	return s.insertConclusion(ctx, tx, *archive.Conclusion)
}

// checkArchive refuses what the database would refuse with a worse message.
func checkArchive(archive store.Archive) error {
	if archive.Schema != store.ArchiveSchema {
		return &store.InvalidError{Record: "archive", Field: "schema",
			Reason: fmt.Sprintf("is %d, this program reads %d", archive.Schema, store.ArchiveSchema)}
	}
	id := archive.Campaign.ID
	errs := []error{checkCampaign(archive.Campaign)}
	if archive.Campaign.Run < 1 {
		errs = append(errs, &store.InvalidError{Record: "campaign", Field: "run", Reason: fmt.Sprintf("is %d, it starts at 1", archive.Campaign.Run)})
	}
	for i, trial := range archive.Trials {
		errs = append(errs, checkTrial(trial), checkOwner(fmt.Sprintf("trials[%d]", i), trial.CampaignID, id))
		if trial.RepeatOf >= trial.Number {
			errs = append(errs, &store.InvalidError{Record: "trial", Field: "repeat_of",
				Reason: fmt.Sprintf("trial %d cannot repeat trial %d", trial.Number, trial.RepeatOf)})
		}
	}
	for i, attempt := range archive.Attempts {
		errs = append(errs, checkOwner(fmt.Sprintf("attempts[%d]", i), attempt.CampaignID, id),
			checkPresent("attempt", fields{"state": string(attempt.State)}))
	}
	for i, event := range archive.Events {
		errs = append(errs, checkOwner(fmt.Sprintf("events[%d]", i), event.CampaignID, id),
			checkPresent("event", fields{"name": event.Name}))
	}
	if archive.Conclusion != nil {
		errs = append(errs, checkConclusion(*archive.Conclusion), checkOwner("conclusion", archive.Conclusion.CampaignID, id))
	}
	return errors.Join(errs...)
}

func checkOwner(field, campaignID, want string) error {
	if campaignID == want {
		return nil
	}
	return &store.InvalidError{Record: "archive", Field: field + ".campaign_id", Reason: fmt.Sprintf("is %s, the campaign is %s", campaignID, want)}
}
