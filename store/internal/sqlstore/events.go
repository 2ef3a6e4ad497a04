package sqlstore

import (
	"context"
	"encoding/json"
	"time"

	"nocturne/store"
)

const selectEvents = "select campaign_id, seq, name, time, payload from events where campaign_id = $1 and seq > $2 order by seq"

func scanEvent(row scanner) (store.Event, error) {
	var e store.Event
	err := row.Scan(&e.CampaignID, &e.Seq, &e.Name, instant{&e.Time}, raw{&e.Payload})
	return e, err
}

// AppendEvent numbers and stores an event.
func (s *Store) AppendEvent(ctx context.Context, campaignID, name string, at time.Time, payload json.RawMessage) (event store.Event, err error) {
	if err := checkPresent("event", fields{"name": name}); err != nil {
		return event, err
	}
	err = s.progress(ctx, "append an event to campaign "+campaignID, func(tx *transaction) error {
		if _, err := tx.lock(ctx, campaignID); err != nil {
			return err
		}
		next := store.Event{CampaignID: campaignID, Name: name, Time: at, Payload: payload}
		if err := tx.QueryRowContext(ctx, "select coalesce(max(seq), 0) + 1 from events where campaign_id = $1", campaignID).Scan(&next.Seq); err != nil {
			return err
		}
		if err := s.insertEvents(ctx, tx, []store.Event{next}); err != nil {
			return err
		}
		event, err = scanEvent(tx.QueryRowContext(ctx, selectEvents+" limit 1", campaignID, next.Seq-1))
		return err
	})
	return event, err
}

// Events lists events with Seq greater than after.
func (s *Store) Events(ctx context.Context, campaignID string, after int64, limit int) ([]store.Event, error) {
	query, values := selectEvents, []any{campaignID, after}
	if limit > 0 {
		query, values = query+" limit $3", append(values, limit)
	}
	events, err := collect(ctx, s.Read, scanEvent, query, values...)
	return events, s.wrap("list the events of campaign "+campaignID, err)
}

func (s *Store) insertEvents(ctx context.Context, tx *transaction, events []store.Event) error {
	var rows [][]column
	for _, event := range events {
		payload, err := documentOf("event", "payload", event.Payload)
		if err != nil {
			return err
		}
		rows = append(rows, []column{
			{"campaign_id", event.CampaignID},
			{"seq", event.Seq},
			{"name", event.Name},
			{"time", s.orNow(event.Time)},
			{"payload", payload},
		})
	}
	_, err := tx.insert(ctx, "events", rows, "")
	return err
}
