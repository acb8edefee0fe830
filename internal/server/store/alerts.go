package store

// Alert is a change for the worse of a figure.
type Alert struct {
	ID      string `db:"id" json:"id"`
	Project string `db:"project" json:"project"`
	Series  string `db:"series" json:"series"`
	// Run is the first one of the new level.
	Run            string  `db:"run" json:"run"`
	Figure         string  `db:"figure" json:"figure"`
	Before         float64 `db:"before_value" json:"before"`
	After          float64 `db:"after_value" json:"after"`
	Created        int64   `db:"created" json:"created_ms"`
	Acknowledged   *int64  `db:"acknowledged" json:"acknowledged_ms,omitzero"`
	AcknowledgedBy string  `db:"acknowledged_by" json:"acknowledged_by,omitzero"`
	Note           string  `db:"note" json:"note,omitzero"`
}

// AddAlert adds an alert. It is ErrExists if the run has one for the figure.
func (t *Tx) AddAlert(a Alert) (Alert, error) {
	a.ID, a.Created = NewID(t.now()), t.millis()
	return a, insert(t, "alerts", a)
}

// Move says that the change of an alert is at another run, as later runs show.
func (t *Tx) Move(id, run string, before, after float64) error {
	return t.one("UPDATE alerts SET run = ?, before_value = ?, after_value = ? WHERE id = ?", run, before, after, id)
}

// Alert returns an alert.
func (t *Tx) Alert(id string) (Alert, error) { return get[Alert](t, "alerts", "WHERE id = ?", id) }

// AlertsOf returns the alerts of a figure of a series, those of runs in the bin too.
func (t *Tx) AlertsOf(series, figure string) ([]Alert, error) {
	return list[Alert](t, "alerts", "WHERE series = ? AND figure = ?", series, figure)
}

// present are the alerts of a project, or of all for "", that are not in the bin.
const present = `(project = ? OR ? = '') AND project IN (SELECT id FROM projects WHERE deleted IS NULL)
	AND run IN (SELECT id FROM runs WHERE deleted IS NULL)`

// Alerts lists the alerts of a project, "" for all, the latest first. open selects those that nobody
// acknowledged, before those that were made before another one.
func (t *Tx) Alerts(project string, open bool, before string, limit int) ([]Alert, error) {
	where := "WHERE " + present + " AND (id < ? OR ? = '')"
	if open {
		where += " AND acknowledged IS NULL"
	}
	return list[Alert](t, "alerts", where+" ORDER BY id DESC LIMIT ?", project, project, before, before, limit)
}

// OpenAlerts counts the alerts of a project, "" for all, that nobody acknowledged.
func (t *Tx) OpenAlerts(project string) (n int, err error) {
	err = t.row("SELECT COUNT(*) FROM alerts WHERE acknowledged IS NULL AND "+present, project, project).Scan(&n)
	return n, err
}

// Acknowledge marks an alert as seen. It is ErrNotFound if somebody did so before.
func (t *Tx) Acknowledge(id, who, note string) error {
	return t.one("UPDATE alerts SET acknowledged = ?, acknowledged_by = ?, note = ? WHERE id = ? AND acknowledged IS NULL", t.millis(), who, note, id)
}

// Unchecked returns series with runs in which nobody sought changes yet.
func (t *Tx) Unchecked(limit int) ([]Series, error) {
	return list[Series](t, "series", "WHERE newest <> checked ORDER BY id LIMIT ?", limit)
}

// Checked notes that changes were sought up to the newest run of a series. It is ErrNotFound if
// another server did so.
func (t *Tx) Checked(s *Series) error {
	return t.one("UPDATE series SET checked = ? WHERE id = ? AND checked = ?", s.Newest, s.ID, s.Checked)
}
