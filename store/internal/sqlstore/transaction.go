package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"nocturne/store"
)

// transaction is a change in progress.
type transaction struct {
	*sql.Tx
	dialect Dialect
}

// change runs do in a transaction that is on disk when change returns.
func (s *Store) change(ctx context.Context, what string, do func(*transaction) error) error {
	tx, err := s.Write.BeginTx(ctx, nil)
	if err != nil {
		return s.wrap(what, err)
	}
	return s.wrap(what, s.finish(tx, do))
}

// progress runs do in a transaction that survives the end of this process when
// progress returns, and that reaches the disk no later than the next change. It
// is for reports (events, stages), several of which precede each change of
// state: waiting for the disk with each would cost more than the tuner's whole
// overhead may be.
func (s *Store) progress(ctx context.Context, what string, do func(*transaction) error) error {
	conn, err := s.Write.Conn(ctx)
	if err != nil {
		return s.wrap(what, err)
	}
	defer conn.Close() //nolint:errcheck // returns the connection to the pool
	relaxed := s.dialect.Relaxed
	if relaxed.Before != "" {
		if _, err := conn.ExecContext(ctx, relaxed.Before); err != nil {
			return s.wrap(what, err)
		}
	}
	if relaxed.After != "" {
		defer func() {
			if _, err := conn.ExecContext(context.WithoutCancel(ctx), relaxed.After); err != nil {
				// A connection that stays relaxed must not serve a change.
				_ = conn.Raw(func(any) error { return driver.ErrBadConn })
			}
		}()
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return s.wrap(what, err)
	}
	return s.wrap(what, s.finish(tx, func(tx *transaction) error {
		if relaxed.Within != "" {
			if _, err := tx.ExecContext(ctx, relaxed.Within); err != nil {
				return err
			}
		}
		return do(tx)
	}))
}

// finish commits when do succeeds and rolls back otherwise.
func (s *Store) finish(tx *sql.Tx, do func(*transaction) error) (err error) {
	defer func() {
		if err != nil {
			if undo := tx.Rollback(); undo != nil && !errors.Is(undo, sql.ErrTxDone) {
				err = errors.Join(err, undo)
			}
		}
	}()
	if err := do(&transaction{Tx: tx, dialect: s.dialect}); err != nil {
		return err
	}
	return tx.Commit()
}

// lock locks the campaign against other changes and returns its lease.
func (tx *transaction) lock(ctx context.Context, campaignID string) (store.Lease, error) {
	lease := store.Lease{CampaignID: campaignID}
	err := tx.QueryRowContext(ctx,
		"select owner, token, expires from leases where campaign_id = $1"+tx.dialect.ForUpdate, campaignID,
	).Scan(&lease.Owner, &lease.Token, instant{&lease.Expires})
	if errors.Is(err, sql.ErrNoRows) {
		return lease, fmt.Errorf("campaign %s: %w", campaignID, store.ErrNotFound)
	}
	return lease, err
}

// hold locks the campaign and checks that lease is the current one. A lease
// that has expired is current until another owner takes it.
func (tx *transaction) hold(ctx context.Context, lease store.Lease) error {
	current, err := tx.lock(ctx, lease.CampaignID)
	if err != nil {
		return err
	}
	if current.Owner == "" || current.Token != lease.Token {
		return fmt.Errorf("campaign %s: %w", lease.CampaignID, store.ErrLeaseLost)
	}
	return nil
}

// affected returns how many rows a statement changed.
func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
