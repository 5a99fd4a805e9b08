package orchestrate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAlike(t *testing.T) {
	for v, want := range map[float64]string{1: "agree", .8: "agree", .79: "mostly agree", .5: "mostly agree", .49: "hardly agree", .45: "hardly agree", .2: "hardly agree",
		.19: "do not agree", 0: "do not agree", -.19: "do not agree", -.2: "disagree", -.46: "disagree", -1: "disagree"} {
		require.Equal(t, want, alike(v), v)
	}
}

// One short sentence, whatever the number of pairs.
func TestSentence(t *testing.T) {
	setting := func(imputer, order string) RankSetting { return RankSetting{Imputer: imputer, Order: order} }
	table := &rankTable{frame: frame{metric: accuracyMetric}, names: []string{"a", "b", "c"}, settings: []RankSetting{setting("zero", "morf")},
		means: map[RankSetting]map[string]map[float64][]float64{setting("zero", "morf"): {"a": {0: {1}, .3: {1}, .5: {1}, 1: {0}}}}}
	pair := func(x, y, order string, v, e float64) SettingAgreement {
		a := SettingAgreement{A: setting(x, order), B: setting(y, order), Repeats: 2}
		if v == v {
			a.Spearman = Correlation{Mean: &v, Error: &e}
		}
		return a
	}
	list := []SettingAgreement{pair("zero", "blur", "morf", .45, .1), pair("zero", "mean", "lerf", -.46, .2), pair("blur", "mean", "morf", .93, 0)}
	require.Equal(t, "The ranking of the 3 methods by accuracy depends on what removed pixels become: least alike in lerf zero and mean disagree (-0.46 ± 0.20), "+
		"most alike in morf blur and mean agree (+0.93 ± 0.00) (Spearman's correlation of ranks, mean and standard error over 2 fractions; all 3 pairs in consistency.csv).",
		table.sentence(imputerKey, list, 1))
	require.Contains(t, table.sentence(imputerKey, list[2:], 1), "is much the same whatever removed pixels become: in morf blur and mean agree")
	list[0].Spearman, list[1].Spearman, list[2].Spearman = Correlation{}, Correlation{}, Correlation{}
	require.Equal(t, "The ranking of the 3 methods by accuracy cannot be compared by what removed pixels become: at every fraction one of two settings ranks all methods alike.",
		table.sentence(imputerKey, list, 1))
}

// Without nothing, and without everything, methods cannot differ.
func TestEndsTakeNoPart(t *testing.T) {
	a, b := RankSetting{Imputer: "zero", Order: "morf"}, RankSetting{Imputer: "mean", Order: "morf"}
	means := func(at, half float64) map[float64][]float64 {
		return map[float64][]float64{0: {at}, .5: {half}, 1: {at}}
	}
	table := &rankTable{names: []string{"x", "y"}, means: map[RankSetting]map[string]map[float64][]float64{
		a: {"x": means(1, .1), "y": means(2, .2)}, b: {"x": means(2, .3), "y": means(1, .4)}}}
	got := table.compare(a, b, PairByRemoved, 1)
	require.Equal(t, 1, got.Repeats)
	require.InDelta(t, 1, *got.Spearman.Mean, 1e-12, "the ends say the opposite")
}
