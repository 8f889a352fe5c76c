package budget

import "testing"

func TestScripts(t *testing.T) {
	for i := 1; i < len(scripts); i++ {
		if scripts[i-1].from >= scripts[i].from {
			t.Errorf("%U does not come after %U", scripts[i].from, scripts[i-1].from)
		}
	}
	for r, want := range map[rune]int{
		'\u0080': latin, 'é': latin, 'ß': latin, 'ʃ': phonetic, '\u0301': combining, 'Ω': greek, 'Ж': cyrillic,
		'ѯ': cyrillic, 'ա': rareScript, 'ש': hebrew, 'م': arabic, 'ހ': unknownScript, 'क': indic, 'ଓ': unknownScript,
		'த': indic, 'ไ': thai, 'ཀ': unknownScript, 'မ': rareScript, 'ქ': georgian, 'አ': unknownScript, 'ក': rareScript,
		'ạ': vietnamese, '—': typographic, '€': symbol, '→': symbol, '─': boxDrawing, '■': symbol, '、': widePunctuation,
		'の': kana, '中': han, '鿿': han, '한': hangul, '！': widePunctuation, 'ｱ': kana, '\ufffd': symbol, '𐀀': supplementary,
		'😀': emoji, '𠀀': supplementary, '\U0010ffff': supplementary,
	} {
		if got := scriptOf(r); got != want {
			t.Errorf("%U: feature %d, want %d", r, got, want)
		}
	}
	for feature, weight := range weights {
		if weight == 0 {
			t.Errorf("feature %d costs nothing", feature)
		}
	}
}
