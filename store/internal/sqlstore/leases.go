package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"nocturne/store"
)

// AcquireLease takes a campaign that is free or whose lease has expired.
func (s *Store) AcquireLease(ctx context.Context, campaignID, owner string, ttl time.Duration) (store.Lease, error) {
	return s.take(ctx, campaignID, owner, ttl, "(owner = '' or expires <= "+s.dialect.Now+")")
}

// ForceLease takes a campaign over from the holder of token.
func (s *Store) ForceLease(ctx context.Context, campaignID string, token int64, owner string, ttl time.Duration) (store.Lease, error) {
	return s.take(ctx, campaignID, owner, ttl, "token = $4", token)
}

// take gives the lease to owner if condition holds for it; its parameters begin
// with $4.
func (s *Store) take(ctx context.Context, campaignID, owner string, ttl time.Duration, condition string, values ...any) (store.Lease, error) {
	lease := store.Lease{CampaignID: campaignID, Owner: owner}
	if err := errors.Join(checkPresent("lease", fields{"owner": owner}), checkTTL(ttl)); err != nil {
		return store.Lease{}, err
	}
	err := s.change(ctx, "take the lease of campaign "+campaignID, func(tx *transaction) error {
		current, err := tx.lock(ctx, campaignID)
		if err != nil {
			return err
		}
		err = tx.QueryRowContext(ctx, `update leases set owner = $2, token = token + 1, expires = `+s.dialect.After("$3")+`
			where campaign_id = $1 and `+condition+` returning token, expires`,
			append([]any{campaignID, text(owner), ttl.Microseconds()}, values...)...,
		).Scan(&lease.Token, instant{&lease.Expires})
		if errors.Is(err, sql.ErrNoRows) {
			return &store.LeasedError{CampaignID: campaignID, Owner: current.Owner, Token: current.Token, Expires: current.Expires}
		}
		return err
	})
	if err != nil {
		return store.Lease{}, err
	}
	return lease, nil
}

// RenewLease extends a lease that nobody else has taken.
func (s *Store) RenewLease(ctx context.Context, lease store.Lease, ttl time.Duration) (store.Lease, error) {
	if err := checkTTL(ttl); err != nil {
		return lease, err
	}
	err := s.change(ctx, "renew the lease of campaign "+lease.CampaignID, func(tx *transaction) error {
		if err := tx.hold(ctx, lease); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, "update leases set expires = "+s.dialect.After("$2")+" where campaign_id = $1 returning expires",
			lease.CampaignID, ttl.Microseconds()).Scan(instant{&lease.Expires})
	})
	return lease, err
}

// ReleaseLease makes a campaign free.
func (s *Store) ReleaseLease(ctx context.Context, lease store.Lease) error {
	return s.change(ctx, "release the lease of campaign "+lease.CampaignID, func(tx *transaction) error {
		if err := tx.hold(ctx, lease); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "update leases set owner = '', expires = null where campaign_id = $1", lease.CampaignID)
		return err
	})
}

// Unattended lists the campaigns that nobody goes on with although their state
// says so.
func (s *Store) Unattended(ctx context.Context) ([]string, error) {
	var values parameters
	states := list(&values, []store.CampaignState{store.CampaignWaiting, store.CampaignRunning, store.CampaignRestoring})
	scanID := func(row scanner) (id string, err error) {
		err = row.Scan(&id)
		return id, err
	}
	ids, err := collect(ctx, s.Read, scanID, `select campaigns.id from campaigns join leases on leases.campaign_id = campaigns.id
		where campaigns.state in `+states+` and (leases.owner = '' or leases.expires <= `+s.dialect.Now+`)
		order by campaigns.id`, values...)
	return ids, s.wrap("look for campaigns without a tuner", err)
}
