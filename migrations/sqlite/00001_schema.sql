-- Version 1 of the schema. The same version in ../postgres has the same tables,
-- columns and views.
--
-- Times are UTC instants as integer microseconds since 1970. JSON is text.
-- States, roles and other words are plain text: later versions may add words,
-- and readers must not break on them.

-- +goose Up

create table campaigns (
    id            text    not null primary key,
    name          text    not null,
    run           integer not null check (run >= 1),
    state         text    not null,
    cause         text    not null default '',
    spec_digest   text    not null default '',
    -- An unsigned 64-bit number in decimal, which no integer column holds.
    seed          text    not null default '0',
    host          text    not null default '',
    hardware_key  text    not null default '',
    instance      text    not null default '',
    model         text    not null default '',
    model_key     text    not null default '',
    workload_name text    not null default '',
    workload_key  text    not null default '',
    -- Hardware, model, workload and objective: within one group values compare.
    group_key     text    not null,
    created       integer not null,
    updated       integer not null,
    ended         integer,
    -- Last, since what lies behind a document is slow to reach.
    file          text    not null default '',
    spec          text    check (json_valid(spec)),
    hardware      text    check (json_valid(hardware)),
    workload      text    check (json_valid(workload)),
    objective     text    not null check (json_valid(objective)),
    verdict       text    check (json_valid(verdict)),
    unique (name, run, instance)
) strict;

create index campaigns_by_age on campaigns (created desc, id desc);
-- What `best` needs to know of campaigns without a conclusion.
create index campaigns_by_group on campaigns
    (group_key, id, hardware_key, instance, model, model_key, workload_name, workload_key);
create index campaigns_by_hardware on campaigns (hardware_key);
create index campaigns_by_instance on campaigns (instance);

-- One row for each campaign. Writers lock it first, which puts the changes of a
-- campaign in one order.
create table leases (
    campaign_id text    not null primary key references campaigns (id) on delete cascade,
    owner       text    not null default '', -- empty: free
    token       integer not null default 0,  -- grows with each acquisition
    expires     integer
) strict;

create table trials (
    id                 text    not null primary key,
    campaign_id        text    not null references campaigns (id) on delete cascade,
    number             integer not null check (number >= 1),
    state              text    not null,
    role               text    not null,
    configuration      text    not null check (json_valid(configuration)),
    configuration_hash text    not null,
    repeat_of          integer check (repeat_of < number),
    reason             text    not null default '',
    attempt            integer not null default 0 check (attempt >= 0),
    host               text    not null default '',
    hardware_key       text    not null default '',
    stack_key          text    not null default '',
    stack              text    check (json_valid(stack)),
    driver             text    not null default '',
    value              real    check (abs(value) <= 1.7976931348623157e308),
    standard_error     real    check (abs(standard_error) <= 1.7976931348623157e308),
    -- The value turned so that higher is better; null for a trial that can never
    -- be the best: not complete, manual, or with broken limits.
    score              real    check (abs(score) <= 1.7976931348623157e308),
    broken_limits      text    check (json_valid(broken_limits)),
    failure            text    check (json_valid(failure)),
    log_path           text    not null default '',
    created            integer not null,
    started            integer,
    ended              integer,
    loading_s          real    check (abs(loading_s) <= 1.7976931348623157e308),
    measuring_s        real    check (abs(measuring_s) <= 1.7976931348623157e308),
    overhead_s         real    check (abs(overhead_s) <= 1.7976931348623157e308),
    unique (campaign_id, number),
    foreign key (campaign_id, repeat_of) references trials (campaign_id, number)
) strict;

create index trials_pending on trials (campaign_id, number) where state = 'pending';
create index trials_best on trials (campaign_id, score desc, number) where score is not null;
create index trials_by_configuration on trials (campaign_id, configuration_hash, state);
-- A configuration is measured once in a campaign, and again only as a repeat.
create unique index trials_first on trials (campaign_id, configuration_hash) where repeat_of is null;

-- The large part of a trial, apart so that lists stay small.
create table measurements (
    trial_id  text not null primary key references trials (id) on delete cascade,
    points    text check (json_valid(points)),
    proof     text check (json_valid(proof)),
    effective text check (json_valid(effective))
) strict;

create table attempts (
    trial_id    text    not null references trials (id) on delete cascade,
    number      integer not null check (number >= 1),
    campaign_id text    not null references campaigns (id) on delete cascade,
    state       text    not null,
    host        text    not null default '',
    launch      text    check (json_valid(launch)),
    stage       text    not null default '',
    failure     text    check (json_valid(failure)),
    started     integer not null,
    ended       integer,
    primary key (trial_id, number)
) strict;

create index attempts_by_campaign on attempts (campaign_id, started);
create index attempts_running on attempts (campaign_id) where state = 'running';

create table conclusions (
    campaign_id        text    not null primary key references campaigns (id) on delete cascade,
    hardware_key       text    not null default '',
    instance           text    not null default '',
    stack_key          text    not null default '',
    driver             text    not null default '',
    model              text    not null default '',
    model_key          text    not null default '',
    workload_name      text    not null default '',
    workload_key       text    not null default '',
    group_key          text    not null,
    configuration_hash text    not null,
    value              real    not null check (abs(value) <= 1.7976931348623157e308),
    score              real    not null check (abs(score) <= 1.7976931348623157e308),
    interval_low       real    check (abs(interval_low) <= 1.7976931348623157e308),
    interval_high      real    check (abs(interval_high) <= 1.7976931348623157e308),
    speedup            real    check (abs(speedup) <= 1.7976931348623157e308),
    launches           integer not null check (launches >= 0),
    confirmed          integer not null check (confirmed in (0, 1)),
    claim              text    not null,
    time               integer not null,
    -- Last, since what lies behind a document is slow to reach.
    hardware           text    check (json_valid(hardware)),
    stack              text    check (json_valid(stack)),
    workload           text    check (json_valid(workload)),
    objective          text    not null check (json_valid(objective)),
    configuration      text    not null check (json_valid(configuration)),
    check ((interval_low is null) = (interval_high is null))
) strict;

-- Has every column that `best` filters and orders by.
create index conclusions_by_group on conclusions
    (group_key, confirmed desc, score desc, time desc, campaign_id,
     hardware_key, instance, model, model_key, workload_name, workload_key, driver);
create index conclusions_by_hardware on conclusions (hardware_key);
create index conclusions_by_instance on conclusions (instance);

create table events (
    campaign_id text    not null references campaigns (id) on delete cascade,
    seq         integer not null check (seq >= 1),
    name        text    not null,
    time        integer not null,
    payload     text    check (json_valid(payload)),
    primary key (campaign_id, seq)
) strict;
