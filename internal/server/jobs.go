package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/sse"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/server/queue"
	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/internal/server/work"
)

// jobBody asks for a job.
type jobBody struct {
	Project string            `json:"project" minLength:"1" maxLength:"200" doc:"id or name; a project that is absent is added"`
	Kind    string            `json:"kind" enum:"profile,import,saved,compress,apply,bench" doc:"profile measures or estimates a model, import reads a record of another tool, saved takes a saved profile or study, compress makes a study of a model, apply writes the compressed model of a plan, bench measures it"`
	Inputs  []inputBody       `json:"inputs" minItems:"1" maxItems:"8" doc:"the file to work on, then those that it refers to"`
	Options map[string]string `json:"options,omitempty" doc:"as the flags of opmeter, such as on, engine, threads; GET /system lists them"`
	Labels  labelsBody        `json:"labels,omitempty"`
	Tags    []string          `json:"tags,omitempty" maxItems:"50"`
}

type inputBody struct {
	Name string `json:"name" minLength:"1" maxLength:"200"`
	Hash string `json:"hash" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of an uploaded file"`
	As   string `json:"as,omitempty" enum:"model,record,result,study,plan,data,labels" doc:"what the file is for; by default its position says that"`
}

// labelsBody says where a model comes from.
type labelsBody struct {
	Branch string `json:"branch,omitempty" maxLength:"200" nullable:"true"`
	Commit string `json:"commit,omitempty" maxLength:"200" nullable:"true"`
	Pull   string `json:"pull,omitempty" pattern:"^([1-9][0-9]{0,17})?$" nullable:"true" doc:"number of the pull request"`
	Note   string `json:"note,omitempty" maxLength:"4000" nullable:"true"`
}

// maxWaiting bounds the jobs that wait or run.
const maxWaiting = 100_000

func (s *Server) addJobs(api huma.API) {
	add(api, "POST /jobs", "add-job", store.Start, "Start a job", func(ctx context.Context, in *struct {
		Key  string `header:"Idempotency-Key" maxLength:"200" doc:"the same key and request again return the first job"`
		Body jobBody
	},
	) (*item[jobView], error) {
		j, err := s.newJob(ctx, in.Key, &in.Body)
		return &item[jobView]{s.view(j)}, err
	}, func(o *huma.Operation) { o.DefaultStatus = 201 })
	add(api, "GET /jobs", "list-jobs", store.Read, "List jobs that wait or run, and those that ended lately", func(ctx context.Context, in *struct {
		Paged
		State string `query:"state" enum:"waiting,running,done,failed,cancelled"`
	},
	) (*item[listed[jobView]], error) {
		if err := s.queue.Up(ctx); err != nil {
			return nil, err
		}
		all := s.queue.Jobs(func(j *queue.Job) bool {
			return who(ctx).sees(j.Project) && (in.State == "" || string(j.State) == in.State) && (in.Before == "" || position(j) < in.Before)
		})
		part := cut(all, in.Limit, position)
		out := listed[jobView]{Items: make([]jobView, len(part.Items)), Next: part.Next}
		for i, j := range part.Items {
			out.Items[i] = jobView{j, s.silent(&j)}
		}
		return &item[listed[jobView]]{out}, nil
	})
	add(api, "GET /jobs/{id}", "get-job", store.Read, "The state of a job", func(ctx context.Context, in *Named) (*item[jobView], error) {
		j, err := s.job(ctx, in.ID)
		return &item[jobView]{s.view(j)}, err
	})
	add(api, "POST /jobs/{id}/cancel", "cancel-job", store.Start, "End a job", func(ctx context.Context, in *Named) (*item[jobView], error) {
		if _, err := s.job(ctx, in.ID); err != nil {
			return nil, err
		}
		j, err := s.queue.Cancel(ctx, in.ID)
		if err == nil {
			err = s.log(ctx, who(ctx).name, "cancel job", in.ID)
		}
		return &item[jobView]{s.view(j)}, err
	})
	sse.Register(api, huma.Operation{
		OperationID: "follow-job", Method: "GET", Path: prefix + "/jobs/{id}/events", Summary: "Follow a job until it ends",
		Metadata: map[string]any{roleKey: store.Read}, Security: []map[string][]string{{"token": {}}},
		Errors: []int{401, 403, 422, 429},
	}, map[string]any{"state": jobView{}, "absent": absent{}}, func(ctx context.Context, in *Named, send sse.Sender) {
		if j, err := s.job(ctx, in.ID); err != nil || j.State.Ended() {
			if err != nil {
				_ = send.Data(absent{err.Error()})
			} else {
				_ = send.Data(s.view(j))
			}
			return
		}
		states, stop := s.queue.Follow(in.ID)
		defer stop()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		var sent jobView
		for {
			select {
			case j := <-states:
				if sent = s.view(j); send.Data(sent) != nil || j.State.Ended() {
					return
				}
			case <-tick.C: // a worker falls silent without a change of the state
				if now := s.view(sent.Job); now.Silent != sent.Silent {
					if sent = now; send.Data(sent) != nil {
						return
					}
				}
			case <-ctx.Done():
				return
			case <-s.ctx.Done():
				return
			}
		}
	})
	describeEvents(api, prefix+"/jobs/{id}/events")
}

// position is where a job stands in lists: by its time, and its id within that.
func position(j *queue.Job) string { return fmt.Sprintf("%011x-%s", j.Created, j.ID) }

// describeEvents describes each event of a stream: the library describes a list of them.
func describeEvents(api huma.API, path string) {
	schema := api.OpenAPI().Paths[path].Get.Responses["200"].Content["text/event-stream"]
	schema.Schema = &huma.Schema{Type: "object", Required: []string{"data"}, Properties: map[string]*huma.Schema{
		"event": {Type: "string", Enum: []any{"state", "absent"}},
		"data": {Type: "string", Extensions: map[string]any{"contentMediaType": "application/json", "contentSchema": map[string]any{"anyOf": []any{
			map[string]string{"$ref": "#/components/schemas/JobView"}, map[string]string{"$ref": "#/components/schemas/Absent"},
		}}}},
	}}
}

// absent says that there is no job to follow.
type absent struct {
	Problem string `json:"problem"`
}

// job finds a job that the caller may see: in the queue, or by its result once the queue forgot it.
func (s *Server) job(ctx context.Context, id string) (queue.Job, error) {
	j, err := s.queue.Job(ctx, id)
	if err == nil && who(ctx).sees(j.Project) {
		return j, nil
	}
	if err != nil && !errors.Is(err, queue.ErrNotFound) {
		return j, err
	}
	var r store.Run
	err = s.db.View(ctx, func(tx *store.Tx) (err error) { r, err = tx.RunOf(id); return err })
	if errors.Is(err, store.ErrNotFound) || err == nil && !who(ctx).sees(r.Project) {
		err = queue.ErrNotFound
	}
	if err != nil {
		return queue.Job{}, err
	}
	return queue.Job{ID: id, Project: r.Project, State: queue.Done, Runs: []string{r.ID}, Created: r.Created, Changed: r.Created, Inputs: []queue.Input{}}, nil
}

// newJob checks a job and queues it.
func (s *Server) newJob(ctx context.Context, key string, b *jobBody) (queue.Job, error) {
	c := who(ctx)
	name, err := plainName("project", b.Project)
	if err != nil {
		return queue.Job{}, err
	}
	tags, err := plainTags(b.Tags)
	if err != nil {
		return queue.Job{}, err
	}
	j := queue.Job{
		ID: store.NewID(time.Now()), Kind: b.Kind, Options: b.Options, Tags: tags, Who: c.name,
		Labels: map[string]string{"branch": b.Labels.Branch, "commit": b.Labels.Commit, "pull": b.Labels.Pull, "note": b.Labels.Note},
	}
	if key != "" {
		// The same caller with the same key gets the same job.
		h := sha256.Sum256([]byte(c.id + "\x00" + key))
		j.ID = "k" + hex.EncodeToString(h[:12])
		body, err := jsonx.Marshal(b)
		if err != nil {
			return j, err
		}
		h = sha256.Sum256(body)
		j.Request = hex.EncodeToString(h[:])
		if old, err := s.job(ctx, j.ID); !errors.Is(err, queue.ErrNotFound) {
			return first(&old, &j, err)
		}
	}
	for _, in := range b.Inputs {
		if err := s.isHere(ctx, in.Hash, fmt.Sprintf("file %s (%s) is not here: upload it first with PUT %s/files/%s", in.Name, in.Hash, prefix, in.Hash)); err != nil {
			return j, err
		}
		j.Inputs = append(j.Inputs, queue.Input{Name: cleanName(in.Name), Hash: in.Hash, As: in.As})
	}
	if err := work.Check(&j); err != nil {
		return j, huma.Error422UnprocessableEntity(err.Error())
	}
	n, err := s.queue.Length(ctx)
	if err != nil {
		return j, err
	}
	if n >= maxWaiting {
		return j, huma.Error503ServiceUnavailable(fmt.Sprintf("%d jobs wait already: try again later", n))
	}
	err = s.db.Change(ctx, func(tx *store.Tx) error {
		p, err := s.project(ctx, tx, name)
		if errors.Is(err, store.ErrNotFound) && c.project == "" {
			p, err = tx.EnsureProject(name)
		}
		if errors.Is(err, store.ErrNotFound) {
			err = huma.Error404NotFound("project " + strconv.Quote(name) + " is unknown here: the token is for another project")
		}
		if err == nil && p.Deleted != nil {
			err = huma.Error409Conflict("project " + p.Name + " is in the bin: restore it first")
		}
		if err != nil {
			return err
		}
		j.Project = p.ID
		return tx.Log(c.name, "add job", j.ID)
	})
	if err != nil {
		return j, err
	}
	added, err := s.queue.Add(ctx, j)
	return first(&added, &j, err)
}

// first returns the job of a key, unless the key now comes with another request. Of a job that the
// queue forgot the request is unknown.
func first(old, j *queue.Job, err error) (queue.Job, error) {
	if err == nil && old.Request != "" && old.Request != j.Request {
		return queue.Job{}, huma.Error422UnprocessableEntity("the key was used with another request: send a new Idempotency-Key")
	}
	return *old, err
}

// cleanName makes a name of a file that is safe in any folder. Its ending stays.
func cleanName(name string) string {
	out := []rune{}
	for _, r := range name {
		if r == '/' || r == '\\' {
			out = out[:0]
			continue
		}
		if r < ' ' || r == 0x7f || r == '\ufffd' || r == ':' {
			r = '_'
		}
		out = append(out, r)
	}
	for len(out) > 0 && (out[0] == '.' || out[0] == '-') {
		out = out[1:]
	}
	if len(out) == 0 {
		return "file"
	}
	return string(out)
}
