package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/server/queue"
)

const (
	// boardsOfWorker is how many boards a simulated worker has.
	boardsOfWorker = 50
	// usedBoards is for how many of them there is a job.
	usedBoards = 10
	// fleetJob is how long a job of the fleet takes. Its worker tells its progress twice a second.
	fleetJob = 10 * time.Second
)

// fleet simulates many workers with boards: without jobs, with a job for each fifth board, and a
// minute long with nearly all workers measuring.
func fleet(workers int) (err error) {
	for _, part := range []struct {
		name  string
		takes time.Duration
		drive func(r *rig)
	}{
		{"no job, for half a minute", 0, func(*rig) { time.Sleep(30 * time.Second) }},
		{"one job for each fifth board, as fast as 8 clients can", 0, func(r *rig) {
			var clients sync.WaitGroup
			for c := range 8 {
				clients.Go(func() {
					for i := c; i < workers*usedBoards && r.context.Err() == nil; i += 8 {
						r.submit(i, "device:"+board(i%workers, i/workers))
					}
				})
			}
			clients.Wait()
		}},
		{"for a minute nearly all workers measure", fleetJob, func(r *rig) {
			gap := fleetJob * 10 / 8 / time.Duration(workers)
			until := time.Now().Add(time.Minute)
			// Workers in turn, so that none has two jobs at a time.
			r.every(gap, func(int) bool { return time.Now().Before(until) }, func(i int) { r.submit(i, "device:"+board(i%workers, i/workers%boardsOfWorker)) })
		}},
	} {
		if err := fleetPart(workers, part.name, part.takes, part.drive); err != nil {
			return err
		}
	}
	return nil
}

func fleetPart(workers int, name string, takes time.Duration, drive func(*rig)) (err error) {
	r, err := newRig()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	for w := range workers {
		o := queue.Offers{Targets: []string{"host", "file", "board"}, CPUs: []string{"amd64"}, Engines: []string{"opmeter", "onnxruntime"}}
		for b := range boardsOfWorker {
			o.Boards = append(o.Boards, board(w, b))
		}
		r.work(fmt.Sprintf("worker%03d", w), o, takes, 500*time.Millisecond)
	}
	begin, before := time.Now(), r.usage()
	drive(r)
	if err := r.settle(); err != nil {
		return err
	}
	fmt.Printf("%d workers, %d boards: %s\n", workers, workers*boardsOfWorker, name)
	r.report(begin, before)
	fmt.Println()
	return nil
}

// board is the name of a board of a worker.
func board(worker, n int) string { return fmt.Sprintf("worker%03d/ttyACM%02d", worker, n) }
