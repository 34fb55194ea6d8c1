# Adds the dumps of this build to the dataset; what cannot be read stands in it as a gap and is no fault of the job.
set -euo pipefail
hlotext table "$DUMPS" -o "$DATASET" --append --build "$BUILD" \
  --tables modules,instructions,buffers,times,costs,collectives,findings || [ $? = 2 ]
