package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/opmeter/opmeter/internal/server/blob"
	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/internal/server/work"
)

// offsetHeader says how much of an upload is there.
const offsetHeader = "Upload-Offset"

// completeHeader says that a file is there whole and was checked.
const completeHeader = "Upload-Complete"

// slowest is how long an upload may take for a piece of [piece] bytes.
const (
	slowest = 30 * time.Second
	piece   = 64 << 10
)

// addFiles adds uploads and downloads. They pass as streams, so they are handlers of their own, and
// their description is written by hand.
func (s *Server) addFiles(mux *http.ServeMux, api huma.API) {
	path := prefix + "/files/{hash}"
	mux.HandleFunc("PUT "+path, s.forRole(store.Start, s.upload))
	mux.HandleFunc("HEAD "+path, s.forRole(store.Start, s.uploaded))
	mux.HandleFunc("GET "+path, s.forRole(store.Read, s.download))
	hash := []*huma.Param{{Name: "hash", In: "path", Required: true, Description: "SHA-256 of the file", Schema: &huma.Schema{Type: "string", Pattern: "^[0-9a-f]{64}$"}}}
	secured := []map[string][]string{{"token": {}}}
	answers := func(ok, text string, more ...string) map[string]*huma.Response {
		out := map[string]*huma.Response{ok: {Description: text}}
		for _, status := range append(more, "401", "403", "404", "422", "429", "503") {
			n, _ := strconv.Atoi(status)
			out[status] = &huma.Response{Description: http.StatusText(n)}
		}
		return out
	}
	api.OpenAPI().AddOperation(&huma.Operation{
		Method: "PUT", Path: path, OperationID: "upload-file", Summary: "Upload a file, or go on with an upload",
		Description: "Content-Range says where the rest of a file begins, such as bytes 1000-1999/2000: the part reaches the end of the file. Without it the body is the whole file.",
		Parameters:  hash, Security: secured, Responses: answers("204", "The part is stored", "400", "408", "409", "413"),
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: "string", Format: "binary"}}}},
	})
	api.OpenAPI().AddOperation(&huma.Operation{
		Method: "HEAD", Path: path, OperationID: "uploaded", Summary: "How much of a file is there, in the header " + offsetHeader,
		Description: "The detail of an error is in the header " + work.ProblemHeader + ", escaped as in a URL.",
		Parameters:  hash, Security: secured, Responses: answers("204", "Known"),
	})
	api.OpenAPI().AddOperation(&huma.Operation{
		Method: "GET", Path: path, OperationID: "download-file", Summary: "Download a file",
		Parameters: hash, Security: secured, Responses: answers("200", "The file"),
	})
}

// forRole lets callers pass that have a role.
func (s *Server) forRole(need store.Role, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := who(r.Context())
		switch {
		case c.role == "":
			problem(w, http.StatusUnauthorized, "this server needs a token")
		case !c.may(need):
			problem(w, http.StatusForbidden, fmt.Sprintf("the token has the role %s, this needs %s", c.role, need))
		default:
			next(w, r)
		}
	}
}

// failed answers with an error.
func (s *Server) failed(w http.ResponseWriter, err error) {
	var e huma.StatusError
	if errors.As(asProblem(err), &e) {
		problem(w, e.GetStatus(), e.Error())
	}
}

// upload takes a file or a part of it.
func (s *Server) upload(w http.ResponseWriter, r *http.Request) {
	hash := r.PathValue("hash")
	if !blob.Valid(hash) {
		problem(w, http.StatusBadRequest, "expected the SHA-256 of the file, 64 digits 0 to 9 and a to f")
		return
	}
	offset, total, err := partOf(r)
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	if err := s.use(r.Context(), hash); err != nil {
		s.failed(w, err)
		return
	}
	c := who(r.Context())
	if c.id != "" && !s.limits.allow(tokenUploads, c.id) {
		tokenUploads.refuse(w)
		return
	}
	done := s.limits.upload(c.id)
	if done == nil {
		w.Header().Set("Retry-After", "10")
		problem(w, http.StatusTooManyRequests, fmt.Sprintf("too many uploads at the same time: at most %d with one token and %d of all", tokenUploading, uploading))
		return
	}
	defer done()
	body := &patient{r: r.Body, control: http.NewResponseController(w)}
	end, err := s.take(r.Context(), hash, offset, total, body)
	w.Header().Set(offsetHeader, strconv.FormatInt(end, 10))
	if err != nil {
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = huma.NewError(http.StatusRequestTimeout, fmt.Sprintf("the upload stalled after %d of %d bytes: go on from there", end, total))
		case errors.Is(err, io.ErrUnexpectedEOF):
			err = huma.Error400BadRequest(fmt.Sprintf("the body ended after %d of %d bytes: go on from there", end, total))
		}
		s.failed(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// take stores a part of a file. A caller for one project must send a file whole that its project
// lacks, even if it is here: another project has it, and knowing its SHA-256 gives no right to it.
func (s *Server) take(ctx context.Context, hash string, offset, total int64, body io.Reader) (end int64, err error) {
	c := who(ctx)
	here := s.usable(ctx, hash) == nil
	if _, err := s.files.Size(hash); err == nil && !here {
		h := sha256.New()
		n, err := io.Copy(h, io.LimitReader(body, s.o.MaxFile))
		switch {
		case err != nil:
			return 0, err
		case offset != 0 || n < total:
			return 0, fmt.Errorf("%w %d: expected 0", blob.ErrOffset, offset)
		case hex.EncodeToString(h.Sum(nil)) != hash:
			return 0, fmt.Errorf("%w, expected %s", blob.ErrHash, hash)
		}
		end = n
	} else {
		if !s.partials.begin(hash, c.project, offset) {
			return 0, fmt.Errorf("%w %d: expected 0", blob.ErrOffset, offset)
		}
		if end, err = s.files.Append(hash, offset, total, body); err != nil {
			return end, err
		}
		s.partials.end(hash)
	}
	if here {
		return end, nil // nothing changed
	}
	return end, s.db.Change(ctx, func(tx *store.Tx) error {
		if c.project != "" {
			if err := tx.Uploaded(hash, c.project); err != nil {
				return err
			}
		}
		return tx.Log(c.name, "upload file", hash)
	})
}

// partials remembers for which project the last part of each upload came, so that nobody completes
// what another project began. After a restart such uploads begin anew.
type partials struct {
	mu sync.Mutex
	of map[string]string
}

func (p *partials) mine(hash, project string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.of[hash]
	return project == "" || known && last == project
}

// begin reports whether a caller may go on with an upload at an offset, and notes that it does.
func (p *partials) begin(hash, project string, offset int64) bool {
	if offset > 0 && !p.mine(hash, project) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil || len(p.of) > maxKnown {
		p.of = map[string]string{}
	}
	p.of[hash] = project
	return true
}

func (p *partials) end(hash string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, hash)
}

// usable is [blob.ErrNotFound] unless a file is here and the caller may use it.
func (s *Server) usable(ctx context.Context, hash string) error {
	if err := s.present(ctx, hash); err != nil {
		return err
	}
	c := who(ctx)
	if c.project == "" {
		return nil
	}
	return s.db.View(ctx, func(tx *store.Tx) error {
		ok, err := tx.BlobOf(hash, c.project)
		if err == nil && !ok {
			err = blob.ErrNotFound
		}
		return err
	})
}

// partOf reads which part of a file a request has.
func partOf(r *http.Request) (offset, total int64, err error) {
	h := r.Header.Get("Content-Range")
	if h == "" {
		if r.ContentLength < 0 {
			return 0, 0, errors.New("the length is unknown: send Content-Length")
		}
		return 0, r.ContentLength, nil
	}
	span, ok := strings.CutPrefix(h, "bytes ")
	from, rest, ok1 := strings.Cut(span, "-")
	last, all, ok2 := strings.Cut(rest, "/")
	a, err1 := strconv.ParseInt(from, 10, 64)
	b, err2 := strconv.ParseInt(last, 10, 64)
	n, err3 := strconv.ParseInt(all, 10, 64)
	if !ok || !ok1 || !ok2 || errors.Join(err1, err2, err3) != nil || a < 0 || b < a || n <= b || b != n-1 {
		return 0, 0, fmt.Errorf("Content-Range %q: expected bytes FROM-LAST/TOTAL up to the end of the file, such as bytes 1000-1999/2000", h)
	}
	return a, n, nil
}

// patient gives each piece of a body its time, however long the whole takes.
type patient struct {
	r       io.Reader
	control *http.ResponseController
	n       int
	begun   bool
}

func (p *patient) Read(b []byte) (int, error) {
	if p.n >= piece || !p.begun {
		_ = p.control.SetReadDeadline(time.Now().Add(slowest)) // tests have no connection
		p.n, p.begun = 0, true
	}
	n, err := p.r.Read(b[:min(len(b), piece)])
	p.n += n
	return n, err
}

// uploaded tells how much of a file is there.
func (s *Server) uploaded(w http.ResponseWriter, r *http.Request) {
	hash := r.PathValue("hash")
	n, err := s.files.Offset(hash)
	if err != nil {
		s.failed(w, err)
		return
	}
	switch err := s.usable(r.Context(), hash); {
	case err == nil:
		w.Header().Set(completeHeader, "?1")
	case !errors.Is(err, blob.ErrNotFound):
		s.failed(w, err)
		return
	default:
		_, other := s.files.Size(hash) // nil: it is here, for others only
		if other == nil || !s.partials.mine(hash, who(r.Context()).project) {
			n = 0
		}
	}
	w.Header().Set(offsetHeader, strconv.FormatInt(n, 10))
	w.WriteHeader(http.StatusNoContent)
}

// download sends a file that the caller may see: of a run of its project.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	hash := r.PathValue("hash")
	if err := s.usable(r.Context(), hash); err != nil {
		s.failed(w, err)
		return
	}
	s.send(w, r, hash, hash)
}

// send sends a file under a name. Browsers store it and never show it.
func (s *Server) send(w http.ResponseWriter, r *http.Request, hash, name string) {
	f, err := s.files.Open(hash)
	if err != nil {
		s.failed(w, err)
		return
	}
	defer f.Close()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="`+strings.Map(plainRune, name)+`"`)
	h.Set("Cache-Control", "private, max-age=31536000, immutable")
	http.ServeContent(w, r, "", time.Time{}, f)
}

// plainRune keeps the characters that a header can hold.
func plainRune(r rune) rune {
	if r < ' ' || r > '~' || r == '"' || r == '\\' {
		return '_'
	}
	return r
}
