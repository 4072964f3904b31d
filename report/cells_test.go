package report_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"lockstep/internal/browsertest"
	"lockstep/report"
)

// twoOperations is the result of a campaign on a lock whose runs reached three situations.
const twoOperations = `{"campaign":"simrun explore --lock <b>y</b>","runs":10,"missing":0,"steps":99,"states":[],"cells":{"situations":3,"met":2,"of":4,
"rows":[{"fault":"drop","entries":[{"moment":"before the request","cannot":"no message"},{"moment":"while waiting"},{"moment":"after the lease"}]},
{"fault":"crash","entries":[{"moment":"before the request","cannot":"it does not come"},{"moment":"while waiting"},{"moment":"after the lease"}]},
{"fault":"isolate","lacks":"one server is alone"}],
"grid":[{"op":"lock","state":"free","moment":"while waiting","met":["drop"],"never":["crash"]},{"op":"lock","state":"free","moment":"after the lease","met":["crash"]},
{"op":"unlock","state":"<i>free</i>","moment":"after the lease","never":["drop"]}]}}`

func cellsPage(t *testing.T) []byte {
	t.Helper()
	x, err := report.ReadIndex(strings.NewReader(strings.ReplaceAll(twoOperations, "\n", "")), "verdicts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := report.WriteIndex(&b, x); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The picture has a row for each operation and state, and a column for each moment and each
// fault that can meet it. Each cell says in its title what it shows.
func TestThePictureOfCells(t *testing.T) {
	page := string(cellsPage(t))
	for _, want := range []string{
		"What the faults met: 2 of 4 cells",
		`<th class="moment" scope="colgroup" colspan="2">while waiting</th><th class="moment" scope="colgroup" colspan="2">after the lease</th>`,
		`<td class="met" title="drop met lock, while waiting, free">●</td><td class="never" title="crash never met lock, while waiting, free">○</td>` +
			`<td class="shut" title="drop had no room in any run: lock, after the lease, free">·</td><td class="met" title="crash met lock, after the lease, free">●</td></tr>`,
		`<b>unlock</b> &lt;i&gt;free&lt;/i&gt;</th><td class="away" colspan="2" title="no run came to: unlock, while waiting, &lt;i&gt;free&lt;/i&gt;"></td>`,
		"<li>no message: drop before the request</li><li>it does not come: crash before the request</li><li>one server is alone: isolate</li>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(page, `scope="colgroup" colspan="0"`) || strings.Contains(page, ">before the request</th>") {
		t.Error("a moment that no fault can meet has columns")
	}
}

func TestACampaignWithoutCellsHasNoPicture(t *testing.T) {
	x, err := report.ReadIndex(strings.NewReader(`{"campaign":"simrun explore --lock y","runs":1,"missing":0,"steps":9,"states":[],"cells":{"situations":3,"met":0,"of":0}}`), "verdicts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := report.WriteIndex(&b, x); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), `<table class="cells">`) {
		t.Error("there is a picture of nothing")
	}
}

// In a narrow window the picture scrolls in a box of its own. Its signs are readable in light
// and dark.
func TestThePictureOfCellsInABrowser(t *testing.T) {
	p := open(t, browsertest.Start(t), cellsPage(t))
	p.Do(chromedp.EmulateViewport(400, 800))
	p.Script(`document.querySelector(".cells").style.width = "1200px"`) // as wide as that of many faults
	if got := browsertest.Eval[[]int](p, `(e => [e.clientWidth, e.scrollWidth, document.documentElement.scrollWidth])(document.querySelector(".over"))`); got[0] > 400 || got[1] < 1200 || got[2] > 400 {
		t.Errorf("the box is %d wide, its picture %d, and the page %d", got[0], got[1], got[2])
	}
	if got := browsertest.Eval[int](p, `(e => { e.scrollLeft = 300; return Math.round(document.querySelector(".cells tbody th").getBoundingClientRect().left - e.getBoundingClientRect().left) })(document.querySelector(".over"))`); got < 0 || got > 2 {
		t.Errorf("the names of the rows are at %d when it has scrolled", got)
	}
	var themes []string
	for range 2 {
		themes = append(themes, browsertest.Eval[string](p, `document.documentElement.dataset.theme`))
		for _, class := range []string{"met", "never", "shut"} {
			got := browsertest.Eval[float64](p, `(e => {
	const light = c => c.match(/\d+/g).slice(0, 3).map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((s, c, i) => s + c * [0.2126, 0.7152, 0.0722][i], 0);
	const [x, y] = [light(getComputedStyle(e).color), light(getComputedStyle(e).backgroundColor)];
	return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
})(document.querySelector("td.`+class+`"))`)
			if got < 4.5 {
				t.Errorf("%s: %s has a contrast of %.1f, want 4.5", themes[len(themes)-1], class, got)
			}
		}
		p.Do(chromedp.Click(chromedp.CSS("#theme")))
	}
	slices.Sort(themes)
	if !slices.Equal(themes, []string{"dark", "light"}) {
		t.Errorf("the themes are %v", themes)
	}
	p.Quiet()
}

// The moments between two requests have a picture of their own, below the sentences about them.
func TestThePictureOfGaps(t *testing.T) {
	const total = `{"campaign":"simrun explore --lock y","runs":1,"missing":0,"steps":9,"states":[],"cells":{"situations":2,"met":1,"of":2,"untried":["no crash fell between GET & DEL"],"rows":[` +
		`{"fault":"crash","entries":[{"moment":"while waiting","met":1,"of":1},{"moment":"after request 1","met":0,"of":1,"gap":true}]}],"grid":[` +
		`{"op":"lock","state":"free","moment":"while waiting","met":["crash"]},{"op":"lock","state":"nothing","moment":"after request 1","gap":true,"never":["crash"]}]}}`
	x, err := report.ReadIndex(strings.NewReader(total), "verdicts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := report.WriteIndex(&b, x); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{
		"<li>no crash fell between GET &amp; DEL</li>",
		`operation, and the lock</th><th class="moment" scope="colgroup" colspan="1">while waiting</th></tr>`,
		`operation, and the actions of others between two of its requests</th><th class="moment" scope="colgroup" colspan="1">after request 1</th></tr>`,
		`<b>lock</b> nothing</th><td class="never" title="crash never met lock, after request 1, nothing">○</td></tr>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if page := string(cellsPage(t)); strings.Contains(page, "between two of its requests") || strings.Contains(page, "Not tried") {
		t.Error("a campaign without gaps has their picture")
	}
}
