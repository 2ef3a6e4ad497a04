// Package load measures a streaming inference server.
//
// A [Client] speaks to one [Target]. [Client.Complete] carries out a single
// request and returns its text: the readiness probe and the correctness checks
// use it. [Client.Round] carries out one pass of a workload. [Pool] joins the
// rounds of a load point.
//
// # The load
//
// In a closed loop a fixed number of workers each send their next request as soon
// as the last one has ended. In an open loop ([Arrival]) requests come at a rate,
// at times drawn beforehand, however busy the server is: the load that users
// make, and the only one that shows what happens beyond the server's capacity. A
// bound on the requests in flight makes requests of an open loop wait in the
// client; that wait is client_queue_time, and no part of a request's latency, as
// in `vllm bench serve`. What a request is late by for any other reason than its
// schedule and its place is schedule_delay: the generator's own fault.
//
// # What is measured
//
// The clock of a request starts when it has a connection; connection set-up is
// a metric of its own. Every event of the stream is stamped when the read that
// delivered it returns, before anything is decoded. An event counts as a chunk
// when it carries tokens: text, reasoning text, a tool call, token ids, or a
// growing token count. Role events, comments, and usage events are no chunks.
//
//   - TTFT: send to first chunk.
//   - E2EL: send to last chunk, or to the event with the finish reason when
//     that comes later (its token may have no text).
//   - TPOT: (E2EL - TTFT) / (output tokens - 1).
//   - chunk_gap: time between two chunks, whatever they hold. It is what a user
//     sees, and what `vllm bench serve` calls ITL.
//   - ITL: time for each token between two chunks: the gap divided by the tokens
//     of the chunk that ended it, counted once for each of them. Where the
//     stream does not tell the tokens of a chunk, the mean tokens of a chunk of
//     that response stand in, and the outcome says that ITL is an estimate.
//
// With one token in each chunk the last two agree. Under speculation a chunk
// holds several tokens, and only TPOT, ITL, E2EL and tokens/s compare across
// step counts. Latencies are those of completed requests.
//
// # Steady state
//
// The rates named as in `vllm bench serve` are over the whole round, from the
// first request to the last straggler. The steady ones are over the window in
// which the load was at its full height: it opens when as many requests have ended
// as there are places (in a closed loop with at least three requests for each) or
// with the first that ends (in an open loop), and closes when a place first finds
// nothing left to send, or when the last request is due. Tokens count in the
// window in which they came. Latencies are those of all requests.
//
// # What counts
//
// Output tokens come from the server's own count (usage.completion_tokens, or
// its equal in another protocol), never from the number of events; without such
// a count the token metrics are absent. A request completes when the status is
// 200, the stream holds no error event, its terminal marker was seen, its finish
// reason (if it has one) is a normal one, and it carried tokens. Everything else
// is a failure, counted by kind, and contributes neither latency nor tokens.
// Nothing is retried.
//
// A round does not count ([Verdict]) when too many requests failed, when forced
// lengths were not kept, when prompts were found in the prefix cache though none
// should be, when the generator was the bottleneck, or when the hardware slowed a
// GPU down. The generator watches itself: its share of the processor time, its
// lag behind its own timers, and schedule_delay.
//
// The rules follow the request functions of vllm-project/vllm
// (vllm/benchmarks/serve.py, lib/endpoint_request_func.py) with the deviations
// named above, each of which avoids a wrong number under speculation or failure.
package load
