-- The views are for readers outside this program. Their columns are documented
-- in docs/sql-views.md; columns may be added, not renamed or removed.

-- +goose Up

create view v1_campaigns as
select
    c.id                                   as campaign_id,
    c.name                                 as campaign,
    c.run                                  as run,
    c.state                                as state,
    c.cause                                as cause,
    c.host                                 as host,
    c.hardware_key                         as hardware_key,
    c.instance                             as instance,
    c.hardware ->> 'name'                  as hardware,
    c.model                                as model,
    c.model_key                            as model_key,
    c.workload_name                        as workload,
    c.workload_key                         as workload_key,
    c.objective ->> 'metric'               as metric,
    c.objective ->> 'direction'            as direction,
    (c.objective ->> 'at')::integer        as at,
    c.objective ->> 'aggregate'            as aggregate,
    (select count(*) from trials t where t.campaign_id = c.id) as trials,
    (select count(*) from trials t where t.campaign_id = c.id and t.state = 'complete') as complete_trials,
    c.verdict ->> 'claim'                  as claim,
    (c.verdict ->> 'speedup')::double precision as speedup,
    c.created                              as created,
    c.updated                              as updated,
    c.ended                                as ended
from campaigns c;

create view v1_trials as
select
    t.campaign_id                          as campaign_id,
    c.name                                 as campaign,
    c.run                                  as run,
    t.number                               as trial,
    t.id                                   as trial_id,
    t.state                                as state,
    t.role                                 as role,
    t.attempt                              as attempt,
    t.repeat_of                            as repeat_of,
    t.configuration_hash                   as configuration_hash,
    t.configuration ->> 'equivalent_to'    as equivalent_to,
    t.configuration -> 'values'            as knobs,
    t.configuration -> 'env'               as env,
    t.configuration -> 'unset'             as unset,
    t.configuration -> 'args'              as args,
    t.host                                 as host,
    t.hardware_key                         as hardware_key,
    t.stack_key                            as stack_key,
    t.driver                               as driver,
    t.stack ->> 'cuda'                     as cuda,
    t.stack ->> 'nccl'                     as nccl,
    t.stack ->> 'server'                   as server,
    t.stack ->> 'server_version'           as server_version,
    c.model                                as model,
    c.workload_name                        as workload,
    c.objective ->> 'metric'               as metric,
    c.objective ->> 'direction'            as direction,
    (c.objective ->> 'at')::integer        as at,
    c.objective ->> 'aggregate'            as aggregate,
    t.value                                as value,
    t.standard_error                       as standard_error,
    t.broken_limits                        as broken_limits,
    t.failure ->> 'class'                  as failure_class,
    t.failure ->> 'reason'                 as failure_reason,
    t.failure ->> 'message'                as failure_message,
    t.reason                               as reason,
    t.log_path                             as log_path,
    t.created                              as created,
    t.started                              as started,
    t.ended                                as ended,
    t.loading_s                            as loading_s,
    t.measuring_s                          as measuring_s,
    t.overhead_s                           as overhead_s
from trials t
join campaigns c on c.id = t.campaign_id;

create view v1_best as
select
    rank() over (
        partition by b.group_key
        order by b.confirmed desc, b.score desc
    )                                      as place,
    b.campaign_id                          as campaign_id,
    c.name                                 as campaign,
    c.run                                  as run,
    b.hardware_key                         as hardware_key,
    b.instance                             as instance,
    b.hardware ->> 'name'                  as hardware,
    b.stack_key                            as stack_key,
    b.driver                               as driver,
    b.stack ->> 'cuda'                     as cuda,
    b.stack ->> 'nccl'                     as nccl,
    b.stack ->> 'server'                   as server,
    b.stack ->> 'server_version'           as server_version,
    b.model                                as model,
    b.model_key                            as model_key,
    b.workload_name                        as workload,
    b.workload_key                         as workload_key,
    b.objective ->> 'metric'               as metric,
    b.objective ->> 'direction'            as direction,
    (b.objective ->> 'at')::integer        as at,
    b.objective ->> 'aggregate'            as aggregate,
    b.configuration_hash                   as configuration_hash,
    b.configuration -> 'values'            as knobs,
    b.configuration -> 'env'               as env,
    b.configuration -> 'unset'             as unset,
    b.configuration -> 'args'              as args,
    b.value                                as value,
    b.interval_low                         as interval_low,
    b.interval_high                        as interval_high,
    b.speedup                              as speedup,
    b.launches                             as launches,
    b.confirmed                            as confirmed,
    b.claim                                as claim,
    b.time                                 as time
from conclusions b
join campaigns c on c.id = b.campaign_id;
