// Package queue holds the jobs of a server, in NATS JetStream and nowhere else: a stream with the
// jobs that wait or run, and a key-value bucket with their states. JetStream runs inside the
// process without a port, or is a cluster elsewhere.
//
// A job is delivered to one worker at a time. A worker that is silent for too long loses it, and
// whatever it reports afterwards is refused: each delivery has a number, and only the latest counts.
package queue

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/opmeter/opmeter/internal/base/jsonx"
)

var (
	// ErrNotFound says that there is no such job.
	ErrNotFound = errors.New("no such job")
	// ErrLate says that a job was given to another worker, or ended.
	ErrLate = errors.New("the job is no longer this worker's")
	// ErrStop says that somebody cancelled a job that runs.
	ErrStop = errors.New("the job was cancelled")
	// ErrEnded says that a job ended before.
	ErrEnded = errors.New("the job has ended")
	// errSame says that a change changes nothing.
	errSame = errors.New("nothing changes")
)

const (
	streamName = "opmeter-jobs"
	bucketName = "opmeter-jobs"
	keysName   = "opmeter-keys"
	// attempts is how many workers may lose a job before it fails.
	attempts = 10
	// maxSubjects bounds the kinds of needs of jobs: each board of a lab is one. NATS alone allows 1,000.
	maxSubjects = 100_000
	// idleConsumer is after which time NATS removes the reader of a subject without jobs: each takes
	// 0.1 MB of memory. One whose worker shows signs of life is not idle.
	idleConsumer = time.Hour
)

// Options configure a queue.
type Options struct {
	// Dir is the folder of the JetStream inside this process; URL is the address of one elsewhere,
	// or several with commas between.
	Dir, URL string
	// Silence is after which time without a sign of life a worker loses its job.
	Silence time.Duration
	// Results returns the results of a job that the database has, empty if it has none.
	Results func(ctx context.Context, job string) ([]string, error)
	// Failed is told of each job that fails, perhaps more than once.
	Failed func(ctx context.Context, j *Job) error
	// Now is the clock.
	Now func() time.Time
	// Late is told why a NATS elsewhere is not usable yet. It may be nil.
	Late func(err error)
}

// Queue is an open queue.
type Queue struct {
	o        Options
	server   *server.Server // nil if it is elsewhere
	conn     *nats.Conn
	stream   jetstream.Stream
	js       jetstream.JetStream
	states   jetstream.KeyValue
	workers  jetstream.KeyValue
	ctx      context.Context // ends with the queue
	stop     context.CancelFunc
	key      []byte // signs leases
	replicas int
	ready    chan struct{} // closed once all of the above is there

	mu      sync.Mutex
	jobs    map[string]Job    // what the bucket holds
	known   map[string]Worker // the workers, by name
	readers map[chan Job]string
	queues  map[string]jetstream.Consumer
	waiting map[string]int // how many jobs wait, by subject
	waiters []*waiter      // workers that wait, those first that wait for longest
	turn    int
	watched sync.WaitGroup
}

// UsualSilence is after which time a silent worker loses its job, unless told.
const UsualSilence = 30 * time.Second

// soon is how long [Open] waits for a NATS elsewhere.
const soon = 500 * time.Millisecond

// Open opens the queue and reads the states of all jobs. If a NATS elsewhere takes long, because it
// elects a leader, Open returns before: operations wait for it, and so does [Queue.Up].
func Open(ctx context.Context, o Options) (_ *Queue, err error) {
	q := &Queue{
		o: o, jobs: map[string]Job{}, known: map[string]Worker{}, readers: map[chan Job]string{}, waiting: map[string]int{},
		queues: map[string]jetstream.Consumer{}, replicas: 1, ready: make(chan struct{}),
	}
	if q.o.Now == nil {
		q.o.Now = time.Now
	}
	q.o.Silence = cmp.Or(q.o.Silence, UsualSilence)
	q.ctx, q.stop = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			q.Close()
		}
	}()
	if err := q.connect(); err != nil {
		return nil, fmt.Errorf("job queue: %w", err)
	}
	var enough <-chan time.Time
	if q.server == nil {
		enough = time.After(soon)
	}
	first, left := make(chan error), make(chan struct{})
	defer close(left)
	q.watched.Go(func() { q.prepareAll(first, left) })
	select {
	case err := <-first:
		if err != nil {
			return nil, err
		}
		return q, nil
	case <-enough:
		q.late(errors.New("NATS does not answer yet"))
		return q, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (q *Queue) late(err error) {
	if q.o.Late != nil {
		q.o.Late(err)
	}
}

// prepareAll makes the queue ready. It passes the error on as long as [Open] waits, and later goes on
// until NATS answers.
func (q *Queue) prepareAll(first chan<- error, left <-chan struct{}) {
	for {
		err := q.prepare(q.ctx)
		if err == nil {
			close(q.ready)
			q.watched.Go(q.lookAgain)
		}
		select {
		case first <- err:
			return
		case <-left:
		}
		if err == nil || q.ctx.Err() != nil {
			return
		}
		q.late(err)
		wait(q.ctx, time.Second)
	}
}

// Up waits until the queue is ready: before that it knows no jobs and no workers.
func (q *Queue) Up(ctx context.Context) error {
	select {
	case <-q.ready:
		return nil
	default:
	}
	end, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-q.ready:
		return nil
	case <-end.Done():
	case <-q.ctx.Done():
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return ErrAway
}

// prepare makes what the queue consists of, and reads what is there.
func (q *Queue) prepare(ctx context.Context) error {
	if err := q.makeStreams(ctx); err != nil {
		return fmt.Errorf("job queue: %w", err)
	}
	if err := q.follow(ctx); err != nil {
		return fmt.Errorf("states of jobs: %w", err)
	}
	if err := q.prepareWorkers(ctx); err != nil {
		return fmt.Errorf("list of workers: %w", err)
	}
	return nil
}

// connect starts the server inside this process or connects to one elsewhere.
func (q *Queue) connect() (err error) {
	options := []nats.Option{
		nats.Name("opmeter"), nats.MaxReconnects(-1), nats.ReconnectWait(200 * time.Millisecond), nats.PingInterval(10 * time.Second),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // operations return theirs; the usual one prints
	}
	if q.o.URL != "" {
		q.replicas = 3
		q.conn, err = nats.Connect(q.o.URL, options...)
		if err != nil {
			return fmt.Errorf("--nats %s: %w: expected the address of a NATS with JetStream that runs, such as nats://127.0.0.1:4222", withoutPassword(q.o.URL), err)
		}
	} else {
		// Every message reaches the disk before it counts.
		q.server, err = server.NewServer(&server.Options{
			JetStream: true, StoreDir: q.o.Dir, DontListen: true, NoSigs: true, NoLog: true, SyncAlways: true, ServerName: "opmeter",
		})
		if err != nil {
			return err
		}
		q.server.Start()
		if !q.server.ReadyForConnections(time.Minute) {
			return fmt.Errorf("%s: the store of jobs does not start; is another server using this folder?", q.o.Dir)
		}
		q.conn, err = nats.Connect("", append(options, nats.InProcessServer(q.server))...)
		if err != nil {
			return err
		}
	}
	q.js, err = jetstream.New(q.conn)
	return err
}

// withoutPassword hides what stands before the @ of addresses.
func withoutPassword(urls string) string {
	all := strings.Split(urls, ",")
	for i, u := range all {
		if at := strings.LastIndexByte(u, '@'); at >= 0 {
			all[i] = "nats://…" + u[at:]
		}
	}
	return strings.Join(all, ",")
}

// makeStreams makes stream, buckets and the key that signs leases.
func (q *Queue) makeStreams(ctx context.Context) error {
	err := q.replicate(ctx, func(ctx context.Context) (err error) {
		q.stream, err = q.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: streamName, Subjects: []string{"jobs.>"}, Retention: jetstream.WorkQueuePolicy,
			Storage: jetstream.FileStorage, Replicas: q.replicas, Duplicates: time.Hour, MaxConsumers: maxSubjects,
		})
		return err
	})
	if err != nil {
		return err
	}
	if q.states, err = q.bucket(ctx, bucketName); err != nil {
		return err
	}
	keys, err := q.bucket(ctx, keysName)
	if err != nil {
		return err
	}
	fresh := make([]byte, 32)
	_, _ = rand.Read(fresh) // never fails
	return again(ctx, startPatience, func(ctx context.Context) error {
		if _, err := keys.Create(ctx, "leases", fresh); err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
			return err
		}
		entry, err := keys.Get(ctx, "leases")
		if err == nil {
			q.key = entry.Value()
		}
		return err
	})
}

// bucket makes a key-value bucket. Unlike those that the client makes, the leader alone answers
// reads: other replicas may not have the last change yet.
func (q *Queue) bucket(ctx context.Context, name string) (kv jetstream.KeyValue, err error) {
	err = q.replicate(ctx, func(ctx context.Context) error {
		if _, err := q.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: "KV_" + name, Subjects: []string{"$KV." + name + ".>"}, MaxMsgsPerSubject: 1, AllowRollup: true, DenyDelete: true,
			Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage, Replicas: q.replicas,
		}); err != nil {
			return err
		}
		kv, err = q.js.KeyValue(ctx, name)
		return err
	})
	return kv, err
}

// follow keeps the states of all jobs in memory, and returns when it has read those that are there.
func (q *Queue) follow(ctx context.Context) error {
	ready, started := make(chan struct{}), false
	err := q.keepWatching(ctx, q.states, func(updates <-chan jetstream.KeyValueEntry) {
		there := map[string]bool{}
		for e := range updates {
			switch {
			case e != nil:
				if there != nil {
					there[e.Key()] = true
				}
				q.seen(e)
			case !started:
				close(ready)
				started, there = true, nil
			case there != nil:
				q.missed(there)
				there = nil
			}
		}
	})
	if err != nil {
		return err
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keepWatching has a function read the changes of a bucket, those that are there first, and again
// from the beginning when they end: a node that was killed took the watch along.
func (q *Queue) keepWatching(ctx context.Context, bucket jetstream.KeyValue, read func(updates <-chan jetstream.KeyValueEntry)) error {
	updates, err := q.watch(ctx, bucket)
	if err != nil {
		return err
	}
	q.watched.Go(func() {
		for updates != nil {
			read(updates)
			updates = nil
			for q.ctx.Err() == nil && updates == nil {
				var err error
				if updates, err = q.watch(q.ctx, bucket); err != nil {
					wait(q.ctx, time.Second)
				}
			}
		}
	})
	return nil
}

// watch begins to follow a bucket. The watch ends with the queue.
func (q *Queue) watch(ctx context.Context, bucket jetstream.KeyValue) (updates <-chan jetstream.KeyValueEntry, err error) {
	err = again(ctx, startPatience, func(context.Context) error {
		life, end := context.WithCancel(q.ctx)
		late := time.AfterFunc(oneTry, end)
		w, err := bucket.WatchAll(life)
		switch {
		case !late.Stop():
			return nats.ErrTimeout
		case err != nil:
			end()
			return err
		}
		updates = w.Updates()
		context.AfterFunc(q.ctx, func() { _ = w.Stop() })
		return nil
	})
	return updates, err
}

// missed forgets jobs that were removed while nobody watched.
func (q *Queue) missed(there map[string]bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id := range q.jobs {
		if !there[id] {
			q.remove(id)
		}
	}
}

// seen takes a change of a state from the watch.
func (q *Queue) seen(e jetstream.KeyValueEntry) {
	if e.Operation() != jetstream.KeyValuePut {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.remove(e.Key())
		return
	}
	if j, err := decode(e); err == nil && j.ID == e.Key() { // else not written by this program
		q.note(j)
	}
}

// note takes a state that was stored, unless a later one is known: what this process changed itself
// need not wait for the watch.
func (q *Queue) note(j Job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.jobs[j.ID].Revision >= j.Revision {
		return
	}
	q.remove(j.ID)
	q.jobs[j.ID] = j
	for c, id := range q.readers {
		if id == j.ID {
			offer(c, j)
		}
	}
	if j.State == Waiting {
		q.waiting[j.Needs.subject()]++
		q.wake(j.Needs.subject())
	}
}

// remove forgets a job. The mutex is held.
func (q *Queue) remove(id string) {
	if old, ok := q.jobs[id]; ok && old.State == Waiting {
		s := old.Needs.subject()
		if q.waiting[s]--; q.waiting[s] == 0 {
			delete(q.waiting, s)
		}
	}
	delete(q.jobs, id)
}

// offer gives a reader the latest state. A reader that is slow misses those between.
func offer(c chan Job, j Job) {
	for {
		select {
		case c <- j:
			return
		default:
		}
		select {
		case <-c:
		default:
		}
	}
}

func decode(e jetstream.KeyValueEntry) (j Job, err error) {
	err = jsonx.Unmarshal(e.Value(), &j)
	j.Revision = e.Revision()
	return j, err
}

// Close ends the queue. Jobs stay.
func (q *Queue) Close() {
	q.stop()
	q.watched.Wait()
	if q.conn != nil {
		q.conn.Close()
	}
	if q.server != nil {
		q.server.Shutdown()
		q.server.WaitForShutdown()
	}
}

// Healthy reports whether the queue answers.
func (q *Queue) Healthy(ctx context.Context) error {
	select {
	case <-q.ready:
	default:
		return ErrAway
	}
	_, err := q.stream.Info(ctx)
	return err
}

// Length is how many jobs wait or run.
func (q *Queue) Length(ctx context.Context) (uint64, error) {
	if err := q.Up(ctx); err != nil {
		return 0, err
	}
	var info *jetstream.StreamInfo
	err := again(ctx, patience, func(ctx context.Context) (err error) { info, err = q.stream.Info(ctx); return err })
	if err != nil {
		return 0, err
	}
	return info.State.Msgs, nil
}

func (q *Queue) millis() int64 { return q.o.Now().UnixMilli() }

// Add queues a job. A job with the id of an earlier one is not added again; the earlier is returned.
func (q *Queue) Add(ctx context.Context, j Job) (Job, error) {
	if old, err := q.Job(ctx, j.ID); !errors.Is(err, ErrNotFound) {
		return old, err
	}
	j.State, j.Created = Waiting, q.millis()
	j.Changed = j.Created
	body, err := jsonx.Marshal(&j)
	if err != nil {
		return j, err
	}
	subject := j.Needs.subject()
	// The message comes first: if the process ends between both, the worker's turn writes the state.
	// A message that arrived although its answer was lost is dropped the second time, by its id.
	err = again(ctx, patience, func(ctx context.Context) error {
		if _, err := q.consumer(ctx, subject); err != nil {
			return err
		}
		if _, err := q.js.Publish(ctx, subject, body, jetstream.WithMsgID(j.ID)); err != nil {
			return err
		}
		j.Revision, err = q.states.Create(ctx, j.ID, body)
		return err
	})
	if errors.Is(err, jetstream.ErrKeyExists) {
		return q.Job(ctx, j.ID)
	}
	if err == nil {
		q.note(j)
	}
	return j, err
}

// Job returns a job as it stands now.
func (q *Queue) Job(ctx context.Context, id string) (Job, error) {
	j, _, err := q.entry(ctx, id)
	return j, err
}

// entry returns a job and the text of its state.
func (q *Queue) entry(ctx context.Context, id string) (j Job, text []byte, err error) {
	if err := q.Up(ctx); err != nil {
		return j, nil, err
	}
	var e jetstream.KeyValueEntry
	err = again(ctx, patience, func(ctx context.Context) (err error) { e, err = q.states.Get(ctx, id); return err })
	if errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrInvalidKey) {
		return j, nil, ErrNotFound
	}
	if err != nil {
		return j, nil, err
	}
	j, err = decode(e)
	return j, e.Value(), err
}

// Jobs lists the jobs that a function selects, the latest first.
func (q *Queue) Jobs(keep func(*Job) bool) (out []Job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, j := range q.jobs {
		if keep(&j) {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, func(a, b Job) int { return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(b.ID, a.ID)) })
	return out
}

// Follow sends the states of a job, the present one first. Call stop in the end.
func (q *Queue) Follow(id string) (states <-chan Job, stop func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := make(chan Job, 1)
	if j, ok := q.jobs[id]; ok {
		c <- j
	}
	q.readers[c] = id
	return c, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.readers, c)
	}
}

// change rewrites a job, again if another change came between. The function may refuse.
func (q *Queue) change(ctx context.Context, id string, f func(*Job) error) (Job, error) {
	var lost []byte // what was written without an answer
	for {
		j, text, err := q.entry(ctx, id)
		if err != nil || lost != nil && bytes.Equal(text, lost) {
			return j, err
		}
		if err := f(&j); err != nil {
			return j, err
		}
		j.Changed = q.millis()
		body, err := jsonx.Marshal(&j)
		if err != nil {
			return j, err
		}
		lost = nil
		try, stop := context.WithTimeout(ctx, oneTry)
		revision, err := q.states.Update(try, id, body, j.Revision)
		stop()
		switch {
		case ctx.Err() != nil:
			return j, ctx.Err()
		case gone(err):
			lost = body
		case !errors.Is(err, jetstream.ErrKeyRevisionMismatch):
			if err == nil {
				j.Revision = revision
				q.note(j)
			}
			return j, err
		}
	}
}

// Cancel ends a job that waits, and asks the worker of one that runs to stop.
func (q *Queue) Cancel(ctx context.Context, id string) (Job, error) {
	return q.change(ctx, id, func(j *Job) error {
		switch {
		case j.State.Ended():
			return ErrEnded
		case j.State == Waiting:
			j.State = Cancelled
		}
		j.Stop = true
		return nil
	})
}

// Forget removes the states of jobs that ended, where a function says so.
func (q *Queue) Forget(ctx context.Context, old func(*Job) bool) error {
	if err := q.Up(ctx); err != nil {
		return err
	}
	for _, j := range q.Jobs(func(j *Job) bool { return j.State.Ended() && old(j) }) {
		if err := again(ctx, patience, func(ctx context.Context) error { return q.states.Purge(ctx, j.ID) }); err != nil {
			return err
		}
	}
	return nil
}

// consumer returns the reader of a subject: a work queue gives each subject one.
func (q *Queue) consumer(ctx context.Context, subject string) (jetstream.Consumer, error) {
	q.mu.Lock()
	c := q.queues[subject]
	q.mu.Unlock()
	if c != nil {
		return c, nil
	}
	name := sha256.Sum256([]byte(subject))
	c, err := q.stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "jobs-" + base64.RawURLEncoding.EncodeToString(name[:]), FilterSubject: subject,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: q.o.Silence, MaxDeliver: -1, MaxAckPending: -1, Replicas: q.replicas,
		InactiveThreshold: idleConsumer,
	})
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queues[subject] = c
	return c, nil
}

// subjects lists where jobs wait that a worker can do. Each call begins with another one, so that
// no kind of job waits for all jobs of another kind.
func (q *Queue) subjects(o *Offers) (out []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for s := range q.waiting {
		if n, ok := needs(s); ok && o.can(n) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	if q.turn++; len(out) > 0 {
		at := q.turn % len(out)
		out = append(out[at:], out[:at]...)
	}
	return out
}

// waiter is a worker that waits for a job.
type waiter struct {
	worker string
	offers *Offers
	look   chan string // a subject where a job may be
	told   bool        // it has a subject to look at
}

// wake tells one worker that a job may have become available: the one that waits for longest of
// those that can do it. The mutex is held.
func (q *Queue) wake(subject string) {
	n, ok := needs(subject)
	if !ok {
		return
	}
	for _, w := range q.waiters {
		if !w.told && w.offers.can(n) {
			w.told = true
			w.look <- subject
			return
		}
	}
}

// lookAgain calls [Queue.look] regularly, until the queue ends.
func (q *Queue) lookAgain() {
	t := time.NewTicker(q.o.Silence / 4)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-q.ctx.Done():
			return
		}
		q.look()
	}
}

// look has workers look for jobs whose state does not change: that of a worker that fell silent, or
// one without a state because the process ended. It notes that those who wait are there.
func (q *Queue) look() {
	q.mu.Lock()
	waiters := slices.Clone(q.waiters)
	q.mu.Unlock()
	if len(waiters) == 0 {
		return
	}
	info, err := q.stream.Info(q.ctx, jetstream.WithSubjectFilter("jobs.>"))
	if err != nil {
		return // it is away for a while
	}
	q.mu.Lock()
	for s := range info.State.Subjects {
		q.wake(s)
	}
	q.mu.Unlock()
	for _, w := range waiters {
		q.saw(q.ctx, w.worker, w.offers)
	}
}

// Lease is a job that a worker has. The token proves it.
type Lease struct {
	Job   Job    `json:"job"`
	Token string `json:"token"`
	// SilenceS is after how many seconds without a sign of life the job goes to another worker.
	SilenceS float64 `json:"silence_s"`
}

// Lease waits for a job that a worker can do, until the context ends.
func (q *Queue) Lease(ctx context.Context, worker string, o *Offers) (*Lease, error) {
	if err := q.Up(ctx); err != nil {
		return nil, err
	}
	w := &waiter{worker: worker, offers: o, look: make(chan string, 1)}
	q.mu.Lock()
	q.waiters = append(q.waiters, w) // before looking, so that no job is missed
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.waiters = slices.DeleteFunc(q.waiters, func(v *waiter) bool { return v == w })
		select {
		case s := <-w.look: // another worker looks instead
			q.wake(s)
		default:
		}
	}()
	q.saw(ctx, worker, o)
	for _, s := range q.subjects(o) {
		if l, err := q.takeFrom(ctx, s, worker); err != nil || l != nil {
			return l, err
		}
	}
	for {
		select {
		case s := <-w.look:
			l, err := q.takeFrom(ctx, s, worker)
			if err != nil || l != nil {
				return l, err
			}
			q.mu.Lock()
			w.told = false
			q.mu.Unlock()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// takeFrom gives a worker the next job of a subject, nil if none waits. A worker that gives up
// meanwhile gets none, and the job is there again at once.
func (q *Queue) takeFrom(ctx context.Context, subject, worker string) (*Lease, error) {
	whole := context.WithoutCancel(ctx)
	c, err := q.consumer(whole, subject)
	if err != nil && !gone(err) {
		return nil, err
	}
	var l *Lease
	if err == nil {
		l, err = q.take(whole, c, worker)
	}
	for ctx.Err() == nil && (gone(err) || errors.Is(err, jetstream.ErrConsumerDeleted)) {
		// NATS removed the reader because it was idle, or the cluster elects a leader.
		q.mu.Lock()
		delete(q.queues, subject)
		q.mu.Unlock()
		if c, err = q.consumer(whole, subject); err == nil {
			l, err = q.take(whole, c, worker)
		}
		if gone(err) {
			wait(ctx, 200*time.Millisecond)
		}
	}
	if l != nil && ctx.Err() != nil {
		return nil, errors.Join(ctx.Err(), q.Release(whole, l.Token, ""))
	}
	return l, err
}

// take gives a worker the next job of a consumer, nil if none waits.
func (q *Queue) take(ctx context.Context, c jetstream.Consumer, worker string) (*Lease, error) {
	for {
		batch, err := c.FetchNoWait(1)
		if err != nil {
			return nil, err
		}
		msg, ok := <-batch.Messages()
		if !ok {
			if err := batch.Error(); err != nil && !errors.Is(err, jetstream.ErrNoMessages) {
				return nil, err
			}
			return nil, nil
		}
		l, err := q.begin(ctx, msg, worker)
		if err != nil {
			_ = msg.Nak() // another try is due at once, not after a silence
		}
		if err != nil || l != nil {
			return l, err
		}
		// The job had ended already: on to the next one.
	}
}

// begin marks a delivered job as running, nil if it needs no run any more.
func (q *Queue) begin(ctx context.Context, msg jetstream.Msg, worker string) (*Lease, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return nil, err
	}
	var first Job
	if err := jsonx.Unmarshal(msg.Data(), &first); err != nil {
		return nil, msg.TermWithReason("not a job of opmeter")
	}
	if err := again(ctx, patience, func(ctx context.Context) error {
		_, err := q.states.Create(ctx, first.ID, msg.Data())
		return err
	}); err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
		return nil, err
	}
	runs, err := q.o.Results(ctx, first.ID)
	if err != nil {
		return nil, err
	}
	j, err := q.change(ctx, first.ID, func(j *Job) error {
		switch {
		case j.State.Ended():
			return ErrEnded
		case meta.NumDelivered < j.Delivered:
			return ErrLate
		case len(runs) > 0: // the last worker reported, and the server ended before it said so
			j.State, j.Runs = Done, runs
			j.finish()
			return nil
		case j.Stop:
			j.State = Cancelled
			j.finish()
			return nil
		case j.State == Running:
			if failed, err := q.lost(ctx, j, "silent", "its worker fell silent"); failed || err != nil {
				return err
			}
		}
		j.State, j.Worker, j.Doing, j.Share = Running, worker, "", nil
		j.Attempt++
		j.Delivered = meta.NumDelivered
		return nil
	})
	switch {
	case errors.Is(err, ErrLate):
		return nil, nil
	case errors.Is(err, ErrEnded) || err == nil && j.State.Ended():
		// If the acknowledgement is lost, the job comes again and ends here again.
		_ = again(ctx, oneTry, msg.DoubleAck)
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &Lease{Job: j, Token: q.sign(j.ID, j.Attempt, msg.Reply()), SilenceS: q.o.Silence.Seconds()}, nil
}

// fail ends a job with an error. It is told before it is stored: else it might not be told at all.
func (q *Queue) fail(ctx context.Context, j *Job, cause, problem string) error {
	j.State, j.Cause, j.Error = Failed, cause, problem
	j.finish()
	if q.o.Failed == nil {
		return nil
	}
	return q.o.Failed(ctx, j)
}

// lost counts a worker that did not finish a job, and fails the job if there were too many.
func (q *Queue) lost(ctx context.Context, j *Job, cause, why string) (failed bool, err error) {
	if j.Lost++; j.Lost < attempts {
		return false, nil
	}
	return true, q.fail(ctx, j, cause, fmt.Sprintf("%d workers began this job and none finished it, at last %s, because %s: look at its log, the job may need more memory than it has", attempts, j.Worker, why))
}

// finish clears what holds for a job that runs only.
func (j *Job) finish() { j.Doing, j.Share = "", nil }

// sign makes the token of a lease: the job, the delivery and where to acknowledge, signed.
func (q *Queue) sign(job string, attempt uint64, reply string) string {
	body := fmt.Sprintf("%s %d %s", job, attempt, reply)
	return base64.RawURLEncoding.EncodeToString(append(q.mac(body), body...))
}

func (q *Queue) mac(body string) []byte {
	h := hmac.New(sha256.New, q.key)
	h.Write([]byte(body))
	return h.Sum(nil)
}

// lease reads a token.
func (q *Queue) lease(token string) (job string, attempt uint64, reply string, err error) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(b) < sha256.Size || !hmac.Equal(b[:sha256.Size], q.mac(string(b[sha256.Size:]))) {
		return "", 0, "", ErrLate
	}
	if _, err := fmt.Sscanf(string(b[sha256.Size:]), "%s %d %s", &job, &attempt, &reply); err != nil {
		return "", 0, "", ErrLate
	}
	return job, attempt, reply, nil
}

// held changes a job of a lease that still counts.
func (q *Queue) held(ctx context.Context, token string, f func(*Job) error) (j Job, reply string, err error) {
	if err := q.Up(ctx); err != nil {
		return j, "", err
	}
	id, attempt, reply, err := q.lease(token)
	if err != nil {
		return j, "", err
	}
	j, err = q.change(ctx, id, func(j *Job) error {
		if j.State != Running || j.Attempt != attempt {
			return ErrLate
		}
		return f(j)
	})
	if errors.Is(err, ErrNotFound) {
		err = ErrLate
	}
	return j, reply, err
}

// Renew tells that a worker is alive and what it does. ErrStop says that it shall stop.
func (q *Queue) Renew(ctx context.Context, token, doing string, share *float64) error {
	j, reply, err := q.held(ctx, token, func(j *Job) error {
		if j.Doing == doing && (j.Share == share || j.Share != nil && share != nil && *j.Share == *share) {
			return errSame // no write
		}
		j.Doing, j.Share = doing, share
		return nil
	})
	if err != nil && !errors.Is(err, errSame) {
		return err
	}
	q.saw(ctx, j.Worker, nil)
	if j.Stop {
		return ErrStop // and no longer lease: a worker that goes on all the same loses the job
	}
	return q.conn.Publish(reply, []byte("+WPI"))
}

// Holder returns the job of a lease if it still counts.
func (q *Queue) Holder(ctx context.Context, token string) (Job, error) {
	if err := q.Up(ctx); err != nil {
		return Job{}, err
	}
	id, attempt, _, err := q.lease(token)
	if err != nil {
		return Job{}, err
	}
	j, err := q.Job(ctx, id)
	if errors.Is(err, ErrNotFound) || err == nil && (j.State != Running || j.Attempt != attempt) {
		err = ErrLate
	}
	return j, err
}

// Finish ends a job: with its results, with an error, or cancelled if both are empty. The results
// are in the database before.
func (q *Queue) Finish(ctx context.Context, token string, runs []string, problem string) (Job, error) {
	return q.finish(ctx, token, runs, "", problem)
}

// Fail ends a job with an error and its code.
func (q *Queue) Fail(ctx context.Context, token, cause, problem string) (Job, error) {
	return q.finish(ctx, token, nil, cause, problem)
}

func (q *Queue) finish(ctx context.Context, token string, runs []string, cause, problem string) (Job, error) {
	j, reply, err := q.held(ctx, token, func(j *Job) error {
		j.finish()
		switch {
		case problem != "":
			j.Runs = runs
			return q.fail(ctx, j, cause, problem)
		case len(runs) > 0:
			j.State, j.Runs = Done, runs
		default:
			j.State = Cancelled
		}
		return nil
	})
	if err != nil {
		return j, err
	}
	q.acknowledge(ctx, reply)
	return j, nil
}

// acknowledge removes the message of a job that ended. If that is lost, the job is delivered again,
// and begin sees that it has ended.
func (q *Queue) acknowledge(ctx context.Context, reply string) {
	_ = again(ctx, oneTry, func(ctx context.Context) error {
		_, err := q.conn.RequestWithContext(ctx, reply, []byte("+ACK"))
		return err
	})
}

// Release gives a job back, so that another worker can take it at once. It says why if the job
// broke its worker: too many of these fail the job.
func (q *Queue) Release(ctx context.Context, token, why string) error {
	j, reply, err := q.held(ctx, token, func(j *Job) error {
		if why != "" {
			if failed, err := q.lost(ctx, j, "crash", why); failed || err != nil {
				return err
			}
		}
		j.State = Waiting
		j.finish()
		return nil
	})
	if err != nil {
		return err
	}
	if j.State.Ended() {
		q.acknowledge(ctx, reply)
		return nil
	}
	_ = again(ctx, oneTry, func(ctx context.Context) error {
		_, err := q.conn.RequestWithContext(ctx, reply, []byte("-NAK"))
		return err
	})
	// Who was told of the new state may have looked before the job was there again.
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wake(j.Needs.subject())
	return nil
}
