package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/opmeter/opmeter/internal/server/blob"
	"github.com/opmeter/opmeter/internal/server/store"
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
		for _, status := range append(more, "401", "403", "404") {
			n, _ := strconv.Atoi(status)
			out[status] = &huma.Response{Description: http.StatusText(n)}
		}
		return out
	}
	api.OpenAPI().AddOperation(&huma.Operation{
		Method: "PUT", Path: path, OperationID: "upload-file", Summary: "Upload a file, or go on with an upload",
		Description: "Content-Range says which part follows, such as bytes 1000-1999/2000. Without it the body is the whole file.",
		Parameters:  hash, Security: secured, Responses: answers("204", "The part is stored", "400", "409", "411", "413", "422"),
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: "string", Format: "binary"}}}},
	})
	api.OpenAPI().AddOperation(&huma.Operation{
		Method: "HEAD", Path: path, OperationID: "uploaded", Summary: "How much of a file is there, in the header " + offsetHeader,
		Parameters: hash, Security: secured, Responses: answers("204", "Known"),
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
		problem(w, e.GetStatus(), err.Error())
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
	body := &patient{r: r.Body, control: http.NewResponseController(w)}
	end, err := s.files.Append(hash, offset, total, body)
	w.Header().Set(offsetHeader, strconv.FormatInt(end, 10))
	if err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = huma.Error400BadRequest(fmt.Sprintf("the body ended after %d of %d bytes: go on from there", end, total))
		}
		s.failed(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
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
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if err := s.present(r.Context(), hash); err == nil {
		w.Header().Set(completeHeader, "?1")
	}
	w.Header().Set(offsetHeader, strconv.FormatInt(n, 10))
	w.WriteHeader(http.StatusNoContent)
}

// download sends a file that the caller may see: of a run of its project.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	hash := r.PathValue("hash")
	if c := who(r.Context()); c.project != "" {
		ok := false
		err := s.db.View(r.Context(), func(tx *store.Tx) (err error) { ok, err = tx.BlobOf(hash, c.project); return err })
		if err != nil || !ok {
			s.failed(w, errors.Join(err, blob.ErrNotFound))
			return
		}
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
