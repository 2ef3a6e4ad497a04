-- What the model of the sampler expected of a trial when it proposed it.

-- +goose Up

alter table trials add column expected jsonb;
