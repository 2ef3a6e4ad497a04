-- Version 1 of the schema. The same version in ../sqlite has the same tables,
-- columns and views.
--
-- Times are instants (timestamptz), JSON is jsonb. States, roles and other
-- words are plain text: later versions may add words, and readers must not
-- break on them. Ids, keys and labels compare by bytes (collation "C"), as
-- in SQLite, so that a prefix of an id is a range of the index.
--
-- PostgreSQL sorts NaN above all numbers; the checks keep it out.

-- +goose Up

create table campaigns (
    id            text collate "C" not null primary key,
    name          text collate "C" not null,
    run           integer          not null check (run >= 1),
    state         text             not null,
    cause         text             not null default '',
    spec_digest   text             not null default '',
    -- An unsigned 64-bit number in decimal, which no integer column holds.
    seed          text             not null default '0',
    host          text             not null default '',
    hardware_key  text collate "C" not null default '',
    instance      text collate "C" not null default '',
    model         text collate "C" not null default '',
    model_key     text collate "C" not null default '',
    workload_name text collate "C" not null default '',
    workload_key  text collate "C" not null default '',
    -- Hardware, model, workload and objective: within one group values compare.
    group_key     text collate "C" not null,
    created       timestamptz      not null,
    updated       timestamptz      not null,
    ended         timestamptz,
    -- Last, since what lies behind a document is slow to reach.
    file          text             not null default '',
    spec          jsonb,
    hardware      jsonb,
    workload      jsonb,
    objective     jsonb            not null,
    verdict       jsonb,
    unique (name, run, instance)
);

create index campaigns_by_age on campaigns (created desc, id desc);
-- What `best` needs to know of campaigns without a conclusion.
create index campaigns_by_group on campaigns
    (group_key, id, hardware_key, instance, model, model_key, workload_name, workload_key);
create index campaigns_by_hardware on campaigns (hardware_key);
create index campaigns_by_instance on campaigns (instance);

-- One row for each campaign. Writers lock it first, which puts the changes of a
-- campaign in one order.
create table leases (
    campaign_id text collate "C" not null primary key references campaigns (id) on delete cascade,
    owner       text             not null default '', -- empty: free
    token       bigint           not null default 0,  -- grows with each acquisition
    expires     timestamptz
);

create table trials (
    id                 text collate "C" not null primary key,
    campaign_id        text collate "C" not null references campaigns (id) on delete cascade,
    number             integer          not null check (number >= 1),
    state              text             not null,
    role               text             not null,
    configuration      jsonb            not null,
    configuration_hash text collate "C" not null,
    repeat_of          integer          check (repeat_of < number),
    reason             text             not null default '',
    attempt            integer          not null default 0 check (attempt >= 0),
    host               text             not null default '',
    hardware_key       text collate "C" not null default '',
    stack_key          text             not null default '',
    stack              jsonb,
    driver             text collate "C" not null default '',
    value              double precision check (value > '-infinity' and value < 'infinity'),
    standard_error     double precision check (standard_error > '-infinity' and standard_error < 'infinity'),
    -- The value turned so that higher is better; null for a trial that can never
    -- be the best: not complete, manual, or with broken limits.
    score              double precision check (score > '-infinity' and score < 'infinity'),
    broken_limits      jsonb,
    failure            jsonb,
    log_path           text             not null default '',
    created            timestamptz      not null,
    started            timestamptz,
    ended              timestamptz,
    loading_s          double precision check (loading_s > '-infinity' and loading_s < 'infinity'),
    measuring_s        double precision check (measuring_s > '-infinity' and measuring_s < 'infinity'),
    overhead_s         double precision check (overhead_s > '-infinity' and overhead_s < 'infinity'),
    unique (campaign_id, number),
    foreign key (campaign_id, repeat_of) references trials (campaign_id, number)
);

create index trials_pending on trials (campaign_id, number) where state = 'pending';
create index trials_best on trials (campaign_id, score desc, number) where score is not null;
create index trials_by_configuration on trials (campaign_id, configuration_hash, state);
-- A configuration is measured once in a campaign, and again only as a repeat.
create unique index trials_first on trials (campaign_id, configuration_hash) where repeat_of is null;

-- The large part of a trial, apart so that lists stay small.
create table measurements (
    trial_id  text collate "C" not null primary key references trials (id) on delete cascade,
    points    jsonb,
    proof     jsonb,
    effective jsonb
);

create table attempts (
    trial_id    text collate "C" not null references trials (id) on delete cascade,
    number      integer          not null check (number >= 1),
    campaign_id text collate "C" not null references campaigns (id) on delete cascade,
    state       text             not null,
    host        text             not null default '',
    launch      jsonb,
    stage       text             not null default '',
    failure     jsonb,
    started     timestamptz      not null,
    ended       timestamptz,
    primary key (trial_id, number)
);

create index attempts_by_campaign on attempts (campaign_id, started);
create index attempts_running on attempts (campaign_id) where state = 'running';

create table conclusions (
    campaign_id        text collate "C" not null primary key references campaigns (id) on delete cascade,
    hardware_key       text collate "C" not null default '',
    instance           text collate "C" not null default '',
    stack_key          text             not null default '',
    driver             text collate "C" not null default '',
    model              text collate "C" not null default '',
    model_key          text collate "C" not null default '',
    workload_name      text collate "C" not null default '',
    workload_key       text collate "C" not null default '',
    group_key          text collate "C" not null,
    configuration_hash text collate "C" not null,
    value              double precision not null check (value > '-infinity' and value < 'infinity'),
    score              double precision not null check (score > '-infinity' and score < 'infinity'),
    interval_low       double precision check (interval_low > '-infinity' and interval_low < 'infinity'),
    interval_high      double precision check (interval_high > '-infinity' and interval_high < 'infinity'),
    speedup            double precision check (speedup > '-infinity' and speedup < 'infinity'),
    launches           integer          not null check (launches >= 0),
    confirmed          boolean          not null,
    claim              text             not null,
    time               timestamptz      not null,
    -- Last, since what lies behind a document is slow to reach.
    hardware           jsonb,
    stack              jsonb,
    workload           jsonb,
    objective          jsonb            not null,
    configuration      jsonb            not null,
    check ((interval_low is null) = (interval_high is null))
);

-- Has every column that `best` filters and orders by.
create index conclusions_by_group on conclusions
    (group_key, confirmed desc, score desc, time desc, campaign_id,
     hardware_key, instance, model, model_key, workload_name, workload_key, driver);
create index conclusions_by_hardware on conclusions (hardware_key);
create index conclusions_by_instance on conclusions (instance);

create table events (
    campaign_id text collate "C" not null references campaigns (id) on delete cascade,
    seq         bigint           not null check (seq >= 1),
    name        text             not null,
    time        timestamptz      not null,
    payload     jsonb,
    primary key (campaign_id, seq)
);
