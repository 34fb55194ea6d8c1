# Writes the page, the summary of the step and the comment, which replaces that of the run before; fails with the report.
set -euo pipefail
options=()
[ -z "$FAIL_ON" ] || options+=(--fail-on "$FAIL_ON")
[ -z "$ACCEPTED" ] || options+=(--accepted "$ACCEPTED")
status=0
hlotext report "$DATASET" -o "$PAGE" "${options[@]}" || status=$?
[ "$status" -le 1 ] || exit "$status"
body=$(mktemp)
hlotext report "$DATASET" -o "$body" --format markdown "${options[@]}" || [ $? = 1 ]
cat "$body" >> "$GITHUB_STEP_SUMMARY"
if [[ "$COMMENT" =~ ^[0-9]+$ ]]; then
  comments="repos/$GITHUB_REPOSITORY/issues/$COMMENT/comments"
  known=$(gh api --paginate "$comments" --jq '.[] | select(.body | startswith("<!-- hlotext:builds -->")) | .id' | head -n 1)
  if [ -n "$known" ]; then
    gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$known" -F "body=@$body" > "$body.answer"
  else
    gh api --method POST "$comments" -F "body=@$body" > "$body.answer"
  fi
fi
exit "$status"
