package settings

import "slices"

// nearest returns the candidate that is closest to a misspelt name, "" when none is close: at most
// a third of the name is wrong, or the name begins the candidate.
//
// candidates must be sorted, or be in another stable order: of equal candidates the first one
// wins. The cost is one distance for each candidate, on the error path only.
func nearest(name string, candidates []string) string {
	best, least := "", max(1, min(len(name), 24)/3)+1
	for _, c := range candidates {
		d := distance(name, c)
		if len(name) >= 3 && len(c) > len(name) && c[:len(name)] == name {
			d = 1
		}
		if d < least {
			best, least = c, d
		}
	}
	return best
}

// DidYouMean is nearest as the end of a message, "" for none.
func DidYouMean(name string, candidates []string) string {
	if near := nearest(name, candidates); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// maxMisspelt bounds the work for a name that comes from outside.
//
// Beyond it two names count as completely different: nothing is proposed.
const maxMisspelt = 80

// distance is how many letters have to be changed, added, removed or swapped with their neighbour.
//
// It is the optimal string alignment distance, in bytes. Three rows are enough: the swap of
// neighbours looks two rows back. Cost: len(a) x len(b) steps.
func distance(a, b string) int {
	if len(a) > maxMisspelt || len(b) > maxMisspelt {
		return maxMisspelt
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// Names returns the names of all settings, sorted.
//
// The slice is the caller's own.
func Names() []string {
	names := make([]string, len(List))
	for i := range List {
		names[i] = List[i].Name
	}
	slices.Sort(names)
	return names
}
